package reconcile

import (
	"cmp"
	"context"
	"errors"

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
	case apierrors.IsNotFound(err) && !p.exists(ctx):
		p.forget()
	case apierrors.IsNotFound(err):
		p.next.failed = true
		logger.Error(err, "The kind has no status subresource: add the marker +kubebuilder:subresource:status to its type, in a test WithStatusSubresource to the fake client")
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
	if err := p.client.Status().Patch(ctx, answer, statusPatch(data), p.fieldManager); err != nil {
		return err
	}
	p.writes.Record(answer)
	p.before = answer
	p.obj.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

// exists asks the API server past the cache, which may not have heard of the deletion.
func (p *pass[T]) exists(ctx context.Context) bool {
	_, err := p.live(ctx)
	return err == nil
}
