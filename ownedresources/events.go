package ownedresources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// record counts what was done to an object, and keeps it for emitEvents. The detail must not contain values of fields.
func (a *applier) record(o *owner, k *kind, obj client.Object, done outcome, detail string) {
	a.metrics.applies.WithLabelValues(k.gvk.Kind, strings.ToLower(string(done))).Inc()
	if a.recorder == nil || done == outcomeFailed {
		return
	}
	text := k.describe(obj)
	if detail != "" {
		text += " (" + detail + ")"
	}
	if o.done == nil {
		o.done = map[outcome][]string{}
	}
	o.done[done] = append(o.done[done], text)
}

// emitEvents emits one event on the owner for each outcome, since each event is a request.
func (a *applier) emitEvents(o *owner) {
	if len(o.done) == 0 {
		return
	}
	for _, done := range [...]outcome{outcomeRecreated, outcomeCreated, outcomeApplied, outcomeDeleted, outcomeRetained} {
		if texts := o.done[done]; len(texts) > 0 {
			note := string(done) + " " + strings.Join(texts, ", ")
			a.recorder.Eventf(o.object, nil, corev1.EventTypeNormal, string(done), "Apply", "%s", eventnote.Cut(note))
		}
	}
	o.done = nil
}
