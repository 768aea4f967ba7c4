package ownedresources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/eventnote"
)

// deed is what was done to an object: an event's reason and, in lower case, the metric's result.
type deed string

const (
	deedCreated   deed = "Created"
	deedApplied   deed = "Applied"
	deedRecreated deed = "Recreated"
	deedDeleted   deed = "Deleted"
	deedFailed    deed = "Failed" // counted only: package reconcile tells of errors
)

// tell counts a deed, and notes it for [applier.report]. The detail holds no values.
func (a *applier) tell(o *owner, k *kind, obj client.Object, d deed, detail string) {
	a.metrics.applies.WithLabelValues(k.gvk.Kind, strings.ToLower(string(d))).Inc()
	if a.recorder == nil || d == deedFailed {
		return
	}
	text := k.describe(obj)
	if detail != "" {
		text += " (" + detail + ")"
	}
	if o.deeds == nil {
		o.deeds = map[deed][]string{}
	}
	o.deeds[d] = append(o.deeds[d], text)
}

// report tells of what was done for the owner by one event a kind of deed, since each event is a
// request too.
func (a *applier) report(o *owner) {
	if len(o.deeds) == 0 {
		return
	}
	for _, d := range [...]deed{deedRecreated, deedCreated, deedApplied, deedDeleted} {
		if texts := o.deeds[d]; len(texts) > 0 {
			note := string(d) + " " + strings.Join(texts, ", ")
			a.recorder.Eventf(o.object, nil, corev1.EventTypeNormal, string(d), "Apply", "%s", eventnote.Cut(note))
		}
	}
	o.deeds = nil
}
