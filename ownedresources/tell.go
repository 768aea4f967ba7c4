package ownedresources

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What was done to an object: the reason of an event, and the result in the metric.
type deed struct{ reason, result string }

var (
	deedCreated   = deed{"Created", "created"}
	deedApplied   = deed{"Applied", "applied"}
	deedRecreated = deed{"Recreated", "recreated"}
	deedDeleted   = deed{"Deleted", "deleted"}
)

// tell counts a deed, and tells of it by an event of the owner. The detail holds no values.
func (a *applier) tell(o *owner, k *kind, obj client.Object, d deed, detail string) {
	a.metrics.applies.WithLabelValues(k.gvk.Kind, d.result).Inc()
	if a.recorder == nil {
		return
	}
	note := d.reason + " " + k.describe(obj)
	if detail != "" {
		note += ": " + detail
	}
	a.recorder.Eventf(o.object, obj, corev1.EventTypeNormal, d.reason, "Apply", "%s", note)
}

func (a *applier) countFailure(k *kind) {
	a.metrics.applies.WithLabelValues(k.gvk.Kind, "failed").Inc()
}
