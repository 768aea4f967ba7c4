package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/record"
)

// RequestedAnnotation is the annotation that requests a pass now. Its value is any text, such as the time. Each new value
// triggers one pass, also if the predicates of [Reconciler.WithPredicates] drop changes of annotations. All steps run in that
// pass, and [Requested] returns true for them. An empty value requests nothing. While an object is paused, the request waits.
//
// If the status has a string field with the JSON name lastHandledReconcileAt, the pass sets it to the value when the request
// was handled, whatever the outcome of the steps. Flux has a field with this name and this meaning, for its annotation
// reconcile.fluxcd.io/requestedAt. If a step met a conflict or returned [KeepConditions], a later pass sets the field.
// Without such a field nothing is acknowledged, and a process that has just started handles the value once more.
const RequestedAnnotation = record.Requested

// Requested reports whether a person has requested this pass by [RequestedAnnotation]. Call it in a step, with the
// context of the step. Some steps compare something outside of the cluster only at intervals, or after a change: if
// Requested is true, such a step should compare now. Requested stays true in later passes until the step has succeeded or
// waits. Outside of a pass it is false.
func Requested(ctx context.Context) bool {
	requested := false
	handleFrom(ctx).use(func(p *pass) { requested = p.requested() })
	return requested
}

// readRequest reads the person's request from the object. It reports whether a step still has to handle it.
func (p *pass) readRequest() (open bool) {
	value := p.object.before.GetAnnotations()[RequestedAnnotation]
	if value == "" {
		return false
	}
	p.asked = asked{p.object.before.GetUID(), value}
	return p.engine.memory.ask(p.object.name, p.asked, p.engine.status.Handled(p.object.before) == value, len(p.engine.passSteps))
}

// requested reports whether the step that runs still has to handle the request.
func (p *pass) requested() bool {
	return p.asked.value != "" && p.engine.memory.isUnanswered(p.object.name, p.asked, p.engine.passSteps[p.running].name)
}

// answer remembers which steps have handled the person's request.
func (p *pass) answer(outcomes []outcome) {
	if p.asked.value == "" {
		return
	}
	for i := range outcomes {
		if o := &outcomes[i]; o.state.ending().isDone {
			p.engine.memory.setAnswered(p.object.name, p.asked, o.step.name)
		}
	}
}

// orAsked returns a predicate that passes the events that p passes, and some updates that p may drop: updates that change
// [RequestedAnnotation], the interval of observations of package external, or the pause. Such an update passes only if p would pass the
// creation of the new object. So p still decides which objects are reconciled. A predicate that looks for changes passes every
// creation.
func orAsked(p predicate.Predicate) predicate.Predicate {
	asks := func(before, after client.Object) bool {
		for _, key := range []string{RequestedAnnotation, record.ObserveInterval} {
			if before.GetAnnotations()[key] != after.GetAnnotations()[key] {
				return true
			}
		}
		return record.PauseOf(before) != record.PauseOf(after)
	}
	return predicate.Funcs{
		CreateFunc: p.Create,
		UpdateFunc: func(e event.UpdateEvent) bool {
			return p.Update(e) || asks(e.ObjectOld, e.ObjectNew) && p.Create(event.CreateEvent{Object: e.ObjectNew})
		},
		DeleteFunc:  p.Delete,
		GenericFunc: p.Generic,
	}
}
