package ownedresources

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/eventnote"
)

// outcome is what was done to an object. It is the reason of an event and, in lower case, a label of the metric
// opblocks_applies_total.
type outcome string

const (
	outcomeCreated   outcome = "Created"
	outcomeApplied   outcome = "Applied"
	outcomeRecreated outcome = "Recreated"
	outcomeDeleted   outcome = "Deleted"
	outcomeRetained  outcome = "Retained" // it stays although its owner is deleted
	outcomeFailed    outcome = "Failed"   // only counted: package reconcile emits the events of errors
)

// doneEvent is the event about the objects with one outcome.
type doneEvent struct {
	related *corev1.ObjectReference // the first of the objects
	texts   []string
}

// report counts what was done to an object, logs it, and keeps it for emitEvents. The detail must not contain values of fields.
func (a *applier) report(ctx context.Context, o *owner, k *kind, obj client.Object, done outcome, detail string) {
	a.metrics.applies.WithLabelValues(k.gvk.Kind, strings.ToLower(string(done))).Inc()
	if done == outcomeFailed {
		return
	}
	logger := log.FromContext(ctx).WithValues("step", o.set, "kind", k.gvk.Kind, "child", client.ObjectKeyFromObject(obj))
	switch {
	case detail == "":
	case done == outcomeApplied:
		logger = logger.WithValues("fields", detail)
	default:
		logger = logger.WithValues("why", detail)
	}
	logger.Info(string(done) + " a child")
	if a.recorder == nil {
		return
	}
	text := k.describe(obj)
	if detail != "" {
		text += " (" + detail + ")"
	}
	event, ok := o.done[done]
	if !ok {
		event = &doneEvent{related: &corev1.ObjectReference{
			APIVersion: k.gvk.GroupVersion().String(), Kind: k.gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
			UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		}}
		if o.done == nil {
			o.done = map[outcome]*doneEvent{}
		}
		o.done[done] = event
	}
	event.texts = append(event.texts, text)
}

// emitEvents emits one event on the owner for each outcome, since each event is a request. If an event has the same
// reason, action, owner and related object as another one within six minutes, client-go counts it as a repetition and
// drops its note. So the action is the name of the step, and the related object is a child in the version after the
// write.
func (a *applier) emitEvents(o *owner) {
	for _, done := range [...]outcome{outcomeRecreated, outcomeCreated, outcomeApplied, outcomeDeleted, outcomeRetained} {
		if event, ok := o.done[done]; ok {
			note := string(done) + " " + strings.Join(event.texts, ", ")
			a.recorder.Eventf(o.object, event.related, corev1.EventTypeNormal, string(done), o.action(), "%s", eventnote.Cut(note))
		}
	}
	o.done = nil
}

// action returns the action of events about the children of the owner: the name of their step in CamelCase.
func (o *owner) action() string { return eventnote.CamelCase(o.set) }
