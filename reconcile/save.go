package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/conditions"
)

// save writes the status if it differs from the one read. Seen is false after a conflict.
func (p *pass[T]) save(ctx context.Context, seen bool) {
	p.status.finish(p.before, p.obj, seen)
	if p.history == nil {
		p.status.keepTransitions(p.before, p.obj)
	}
	if p.status.equal(p.before, p.obj) {
		if !p.metrics.knows(p.name) {
			p.metrics.show(p.name, p.shown(p.before))
		}
		return
	}
	if p.outdated { // the write would meet the same conflict
		p.next.failed = true
		return
	}
	was, _ := p.ready(p.before)
	is, message := p.ready(p.obj)
	logger := log.FromContext(ctx)
	err := p.write(ctx, p.locked)
	switch {
	case err == nil:
		if is && !was {
			p.event(corev1.EventTypeNormal, conditions.Ready, "Reconcile", cmp.Or(message, "Everything is as wanted"))
		}
		p.metrics.show(p.name, p.shown(p.before))
	case errors.Is(ctx.Err(), context.Canceled): // the operator ends
	case isGone(err):
		p.forget()
	case isConflict(err):
		p.next.failed = true
		logger.V(1).Info("Status was written by somebody else meanwhile; trying again", "conflict", err.Error())
	default:
		p.next.fail(err)
		logger.Error(err, "Cannot write the status")
	}
}

// write sends what of the status has changed; with a lock, or as the change needs it. Afterwards
// before is what the API server has.
func (p *pass[T]) write(ctx context.Context, locked bool) error {
	data, err := p.status.patch(p.before, p.obj, locked)
	if err != nil {
		return err
	}
	answer := p.empty()
	answer.SetNamespace(p.name.Namespace)
	answer.SetName(p.name.Name)
	switch err := p.client.Status().Patch(ctx, answer, statusPatch(data), p.fieldManager); {
	case apierrors.IsNotFound(err):
		return p.missing(ctx, err)
	case err != nil:
		return err
	}
	p.writes.Record(answer)
	p.before = answer
	p.obj.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

// goneError is the conflict with a deletion.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

func isGone(err error) bool {
	_, gone := errors.AsType[goneError](err)
	return gone
}

var errNoSubresource = errors.New("the kind has no status subresource: add the marker +kubebuilder:subresource:status to its type, in a test WithStatusSubresource to the fake client")

// missing says what is not there, the object or its status. The cache may not have heard of the deletion.
func (p *pass[T]) missing(ctx context.Context, answer error) error {
	switch _, err := p.live(ctx); {
	case apierrors.IsNotFound(err):
		return goneError{p.conflict()}
	case err != nil:
		return errors.Join(answer, err)
	}
	return fmt.Errorf("%w: %w", errNoSubresource, answer)
}
