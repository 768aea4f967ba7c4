package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/passcontext"
)

// Creation is a prepared request that creates an object. Everything about it is decided, so that several of them can be sent at once.
type Creation struct {
	*owned.Desired
	object client.Object // the object that is sent; after the request, the API server's answer
	err    error         // the error of the request
}

// prepareCreation decides how an object that does not exist is created. It reads the objects on which the decision depends, and makes the
// random values of generated keys.
func (a *Applier) prepareCreation(ctx context.Context, d *owned.Desired) (*Creation, error) {
	// While a StatefulSet is replaced, its pods run on without a controller. The new StatefulSet has to adopt them at once. So its creation
	// neither waits for other objects nor is slowed down.
	orphans, err := write.OrphanedPods(ctx, d)
	if err != nil {
		return nil, err
	}
	if len(orphans) == 0 {
		if d.Hold != "" {
			return nil, d.Held("is not created")
		}
		if err := a.SlowDownByName(d.Owner, d.Kind, d.Object, memory.Creating, d.Sum); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(requireOneBuilder(ctx, d), plan.CheckValues(d), a.Cache.require(d)); err != nil {
		return nil, err
	}
	if d.Binding != owned.ByReference { // if the owner were gone, nobody would delete an object without an owner reference
		if err := d.Owner.ConfirmAlive(ctx); err != nil {
			return nil, err
		}
	}
	feature.SetGenerated(ctx, d, feature.PlanFill(d.Generate, nil))
	if err := write.KeepReplicas(ctx, d, orphans); err != nil {
		return nil, err
	}
	if err := write.GrowLeftClaims(ctx, d); err != nil {
		return nil, err
	}
	obj, err := plan.ToPost(d)
	return &Creation{Desired: d, object: obj}, err
}

// errNotSent is the error of a creation whose goroutine ended without an answer, for example because of a panic.
var errNotSent = errors.New("the creation was not sent to its end")

// Send sends the creations concurrently, and waits for the answers.
func Send(ctx context.Context, all ...*Creation) {
	passcontext.Concurrently(ctx, len(all), func(i int) {
		c := all[i]
		c.err = errNotSent
		c.err = write.Post(ctx, c.Owner, c.object)
	})
}

// answer returns the object that the API server has created. If the creation failed, it returns the error.
func (a *Applier) answer(c *Creation) (client.Object, error) {
	d := c.Desired
	switch {
	case apierrors.HasStatusCause(c.err, corev1.NamespaceTerminatingCause):
		wait := owned.NewWaiting(owned.ReasonTerminating, 0, fmt.Sprintf("%s is not created, since its namespace is being deleted", d))
		if d.Object.GetNamespace() != d.Owner.Namespace { // no event shows when a namespace other than the owner's is gone
			return nil, owned.WithDelay(wait, terminatingNamespaceDelay)
		}
		return nil, wait
	case c.err != nil:
		return nil, fmt.Errorf("create %s: %w", d, write.WithSizeRemedy(plan.SeeUserPatch(d, nil, write.WithoutValues(c.err))))
	}
	a.CountByName(d.Owner, d.Kind, c.object, memory.Creating, d.Sum)
	return d.Kind.AsLive(c.object)
}

// finish returns the object that the API server has created. It also remembers the object and reports the creation.
func (a *Applier) finish(ctx context.Context, c *Creation) (client.Object, error) {
	answer, err := a.answer(c)
	c.Replicas = nil // the number of replicas is sent only once
	if err != nil {
		return nil, err
	}
	answer = a.remember(ctx, c.Desired, answer)
	a.Recreations.Created(c.Desired, answer.GetUID())
	a.Report(ctx, c.Owner, c.Kind, answer, report.OutcomeCreated, "")
	return answer, nil
}

// FinishCreation remembers and reports the created object. If an object of this name already existed, FinishCreation updates it: see
// [Applier.UpdateUnseen].
func (a *Applier) FinishCreation(ctx context.Context, c *Creation) (Result, error) {
	answer, err := a.finish(ctx, c)
	if apierrors.IsAlreadyExists(err) {
		return a.UpdateUnseen(ctx, c.Desired, err)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Object: answer, Operation: Created}, nil
}

// terminatingNamespaceDelay is the delay before the next attempt to create an object whose namespace is being deleted.
const terminatingNamespaceDelay = 10 * time.Second
