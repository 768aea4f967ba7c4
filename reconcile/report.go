package reconcile

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/eventnote"
	"github.com/opblocks/opblocks/internal/passcontext"
)

// Eventf emits an event from a step. It takes the arguments of an EventRecorder's Eventf in
// k8s.io/client-go/tools/events, except two that the pass supplies. The action is the name of the step in CamelCase.
// If regarding is not the object that the step reconciles, that object becomes the related object of the event. The
// event type is Normal or Warning, and the reason is in CamelCase. A note of more than 1024 bytes, the API's limit,
// is shortened.
//
// Every event is a request. Emit events for changes, not for the current state. Without a manager or
// [Reconciler.WithRecorder], and outside of a pass, Eventf does nothing.
func Eventf(ctx context.Context, regarding client.Object, eventType, reason, note string, args ...any) {
	h := handleFrom(ctx)
	if h == nil {
		return
	}
	text := fmt.Sprintf(note, args...)
	h.use(func(p *pass) { p.emit(regarding, eventType, reason, text) })
}

// emit emits an event for the step that runs.
func (p *pass) emit(regarding client.Object, eventType, reason, note string) {
	if p.engine.recorder == nil {
		return
	}
	var related client.Object
	if !p.object.owns(regarding) {
		related = p.object.before
	}
	p.engine.recorder.Eventf(regarding, related, eventType, reason, eventnote.CamelCase(p.engine.passSteps[p.running].name), "%s", eventnote.Cut(note))
}

// event emits an event for the pass itself. Its action is the argument in CamelCase.
func (p *pass) event(eventType, reason, action, note string) {
	if p.engine.recorder == nil {
		return
	}
	p.engine.recorder.Eventf(p.object.before, nil, eventType, reason, eventnote.CamelCase(action), "%s", eventnote.Cut(note))
}

// report logs an outcome and emits its event. A failure that repeats is reported only once, because the conditions
// show that it lasts.
func (p *pass) report(ctx context.Context, o *outcome) {
	step, end := o.step.name, o.state.ending()
	switch {
	case o.state == succeeded:
		p.engine.memory.clearWarning(p.object.name, step)
	case end.words != "" && !end.isFault:
		log.FromContext(ctx).V(1).Info(end.words, "step", step, "reason", o.reason, "message", o.message)
	case end.isFault:
		if p.engine.memory.addWarning(p.object.name, step, o.message) {
			logFailure(log.FromContext(ctx).WithValues("step", step), o)
			p.event(corev1.EventTypeWarning, o.reason, step, o.message)
		}
	}
}

// logFailure logs a step that has failed or is stalled. A problem of the operator is logged as an error, for example if a
// database cannot be reached or a role lacks a verb. A problem that the user has to correct in the object is logged as
// information, without a stack trace.
func logFailure(logger logr.Logger, o *outcome) {
	if end := o.state.ending(); !end.lasts || o.forbidden {
		logger.Error(o.err, end.words)
	} else {
		logger.Info(end.words, "reason", o.reason, "message", o.message)
	}
}

// reportEnd reports to a test that explores faults how the pass has ended. outcomes is empty if no step had to run: the object is
// paused, filtered out or cleaned up. The report has the value of a panic. It stays in the test, because it may be secret.
func (p *pass) reportEnd(ctx context.Context, outcomes []outcome) {
	report := passcontext.PassEnds(ctx)
	if report == nil {
		return
	}
	end := passcontext.PassEnd{Kind: p.engine.kind, UID: p.object.before.GetUID(), Cleanup: p.object.before.GetDeletionTimestamp() != nil}
	end.FilteredOut = len(outcomes) == 0 && p.engine.filter != nil && !p.engine.filter(p.object.before)
	for i := range outcomes {
		o := &outcomes[i]
		step := passcontext.StepEnd{Step: o.step.name, State: o.state.ending().label, Reason: o.reason, Message: o.message}
		if o.panicked != nil {
			step.Message = fmt.Sprintf("%s: %v", o.message, o.panicked)
		}
		end.Steps = append(end.Steps, step)
	}
	report(end)
}
