package reconcile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// noStep is the step of an outcome of the pass itself, which adds finalizers.
const (
	noStep     = -1
	noStepName = "finalizer"
)

func (p *pass[T]) stepName(o *outcome) string {
	if o.step == noStep {
		return noStepName
	}
	return p.steps[o.step].name
}

// note logs an outcome, tells of it by an event, and takes what it says about the next pass.
func (p *pass[T]) note(ctx context.Context, o *outcome) {
	name := p.stepName(o)
	switch o.state {
	case succeeded:
		p.logged.forget(p.name, name)
		p.next.wait(spread(o.after, p.name, 0))
		return
	case skipped:
		return
	case waiting, conflicted, failed, terminal:
	}
	logger := log.FromContext(ctx).WithValues("step", name)
	p.next.wait(o.after)
	p.next.notBefore = max(p.next.notBefore, o.notBefore)
	quickly := p.backoff.tries(p.name) < quickRefusals
	p.next.failed = p.next.failed || o.retries || o.refused && quickly
	p.next.exhausted = p.next.exhausted || o.refused && !quickly
	says := ""
	switch o.state {
	case waiting:
		logger.V(1).Info("Step waits", "reason", o.reason, "message", o.message)
	case conflicted:
		logger.V(1).Info("Step lost a race and is tried again", "conflict", o.message)
	case failed:
		says = "Step failed"
	case terminal:
		says = "Step cannot succeed until something changes"
		p.next.wait(spread(terminalRetry, p.name, 0))
	case succeeded, skipped:
	}
	if says != "" && p.logged.isNew(p.name, name, o.message) {
		logger.Error(o.err, says)
		p.event(corev1.EventTypeWarning, o.reason, name, o.message)
	}
}
