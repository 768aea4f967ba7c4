package ownedresources

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// creation is the POST of an absent object. Everything is decided, so that several can be sent at once.
type creation struct {
	*desired
	object client.Object // what is sent, and then the API server's answer
	err    error         // the error of the request
}

// prepareCreation decides how an absent object is created. It reads what has to be known, and makes the generated values.
func (a *applier) prepareCreation(ctx context.Context, d *desired) (*creation, error) {
	orphans, err := a.orphanedPods(ctx, d) // pods without a controller: the StatefulSet that adopts them does not wait for anything
	if err != nil {
		return nil, err
	}
	if len(orphans) == 0 {
		if d.hold != "" {
			return nil, d.held("is not created")
		}
		if err := a.slowDownByName(d.owner, d.kind, d.object, creating, d.sum); err != nil {
			return nil, err
		}
	}
	if err := d.checkValues(); err != nil {
		return nil, err
	}
	if d.binding != byReference { // the garbage collector would not delete it
		if err := a.confirmAlive(ctx, d.owner); err != nil {
			return nil, err
		}
	}
	d.setGenerated(ctx, planFill(d.generate, nil))
	if err := a.keepReplicas(ctx, d, orphans); err != nil {
		return nil, err
	}
	if err := a.growLeftClaims(ctx, d); err != nil {
		return nil, err
	}
	obj, err := d.toPost()
	return &creation{desired: d, object: obj}, err
}

// errNotSent is the error of a creation whose goroutine has ended in the middle of it.
var errNotSent = errors.New("the creation was not sent to its end")

// send sends creations at once, by POST. A server-side apply can create too, but it would take over an object of that name that a
// cache which is stale, or limited by a selector, does not show.
func send(ctx context.Context, all ...*creation) {
	passcontext.Concurrently(ctx, len(all), func(i int) {
		c := all[i]
		c.err = errNotSent
		c.err = c.owner.client.Create(ctx, c.object, c.owner.fieldManager, client.FieldValidation(metav1.FieldValidationStrict))
	})
}

// answer returns the object that a creation has made, or why it has made none.
func (a *applier) answer(c *creation) (client.Object, error) {
	d := c.desired
	switch {
	case apierrors.HasStatusCause(c.err, corev1.NamespaceTerminatingCause):
		wait := &WaitingError{reason: reasonTerminating, message: fmt.Sprintf("%s is not created, since its namespace is being deleted", d)}
		if d.object.GetNamespace() != d.owner.namespace { // no event shows when it is gone
			wait.after = terminatingNamespaceDelay
		}
		return nil, wait
	case c.err != nil:
		return nil, fmt.Errorf("create %s: %w", d, withSizeRemedy(withoutValues(c.err)))
	}
	a.countByName(d.owner, d.kind, c.object, creating, d.sum)
	return d.kind.asLive(c.object)
}

// finishCreation notes what was created. If the object exists after all, it goes on with the live one.
func (a *applier) finishCreation(ctx context.Context, c *creation) (Result, error) {
	d := c.desired
	answer, err := a.answer(c)
	d.replicas = nil
	if apierrors.IsAlreadyExists(err) {
		return a.updateUnseen(ctx, d, err)
	}
	if err != nil {
		return Result{}, err
	}
	answer = a.remember(ctx, d, answer)
	a.owners.noteCreated(d, answer.GetUID())
	a.report(ctx, d.owner, d.kind, answer, outcomeCreated, "")
	return Result{Object: answer, Operation: Created}, nil
}
