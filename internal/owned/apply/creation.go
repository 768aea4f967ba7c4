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

// Creation is the POST of an object that does not exist. Everything about it is decided, so that several creations can be sent at once.
type Creation struct {
	*owned.Desired
	object client.Object // the object that is sent; after the request, the API server's answer
	err    error         // the error of the request
}

// prepareCreation decides how an absent object is created. It reads the objects that the decision depends on, and makes the generated
// values.
func (a *Applier) prepareCreation(ctx context.Context, d *owned.Desired) (*Creation, error) {
	// The pods of a StatefulSet that is being replaced run on without a controller. The new StatefulSet has to adopt them at once, so its
	// creation is neither held nor slowed down.
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
	if d.Binding != owned.ByReference { // if the owner were gone, the garbage collector would not delete the object
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

// errNotSent is the error of a creation whose goroutine ended before the answer came, for example because of a panic.
var errNotSent = errors.New("the creation was not sent to its end")

// Send sends creations at once.
func Send(ctx context.Context, all ...*Creation) {
	passcontext.Concurrently(ctx, len(all), func(i int) {
		c := all[i]
		c.err = errNotSent
		c.err = write.Post(ctx, c.Owner, c.object)
	})
}

// answer returns the object that a creation has made. If the creation failed, answer returns the error.
func (a *Applier) answer(c *Creation) (client.Object, error) {
	d := c.Desired
	switch {
	case apierrors.HasStatusCause(c.err, corev1.NamespaceTerminatingCause):
		wait := owned.NewWaiting(owned.ReasonTerminating, 0, fmt.Sprintf("%s is not created, since its namespace is being deleted", d))
		if d.Object.GetNamespace() != d.Owner.Namespace { // no event shows when the namespace is gone
			return nil, owned.WithDelay(wait, terminatingNamespaceDelay)
		}
		return nil, wait
	case c.err != nil:
		return nil, fmt.Errorf("create %s: %w", d, write.WithSizeRemedy(plan.SeeUserPatch(d, nil, write.WithoutValues(c.err))))
	}
	a.CountByName(d.Owner, d.Kind, c.object, memory.Creating, d.Sum)
	return d.Kind.AsLive(c.object)
}

// finish returns the object that a creation has made. It remembers the object and reports the creation.
func (a *Applier) finish(ctx context.Context, c *Creation) (client.Object, error) {
	answer, err := a.answer(c)
	c.Replicas = nil // the replicas are sent once
	if err != nil {
		return nil, err
	}
	answer = a.remember(ctx, c.Desired, answer)
	a.Recreations.Created(c.Desired, answer.GetUID())
	a.Report(ctx, c.Owner, c.Kind, answer, report.OutcomeCreated, "")
	return answer, nil
}

// FinishCreation notes what was created. If an object of this name exists after all, FinishCreation updates it: see [Applier.UpdateUnseen].
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

// terminatingNamespaceDelay is the delay before an object is tried again if its namespace is being deleted.
const terminatingNamespaceDelay = 10 * time.Second
