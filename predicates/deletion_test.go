package predicates_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/predicates"
)

func TestDeletionStarted(t *testing.T) {
	p := predicates.DeletionStarted()
	cases{
		"Started":        {"the deletion starts, and a finalizer holds the object", p, updated(pod(), pod(beingDeleted)), true},
		"GoesOn":         {"the deletion started earlier, and a finalizer was removed", p, updated(pod(beingDeleted), pod(beingDeleted)), false},
		"NotDeleted":     {"the object is not being deleted", p, updated(pod(), pod(generation(2))), false},
		"WhileDown":      {"the deletion started while the operator was down", p, created(pod(beingDeleted)), true},
		"Created":        {"a new object", p, created(pod()), false},
		"Recreated":      {"the old object is deleted, and no other event says so", p, updated(pod(), pod(uid("77aa"))), true},
		"Deleted":        {"an object without finalizers has no update before", p, deleted(pod()), true},
		"Generic":        {"the object is being deleted", p, generic(pod(beingDeleted)), true},
		"GenericOther":   {"the object is not being deleted", p, generic(pod()), false},
		"NoOldObject":    {"an incomplete event", p, updated(nil, pod(beingDeleted)), true},
		"NoNewObject":    {"an incomplete event", p, updated(pod(), nil), false},
		"GenerationToo":  {"the API server increments the generation too", predicates.GenerationChanged(), updated(pod(), pod(beingDeleted, generation(2))), true},
		"NotSpecChanged": {"the spec is not changed", predicates.SpecChanged(func(p *corev1.Pod) corev1.PodSpec { return p.Spec }), updated(pod(), pod(beingDeleted)), false},
	}.run(t)
}
