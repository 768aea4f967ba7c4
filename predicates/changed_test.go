package predicates_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/predicates"
)

func TestFieldChanged(t *testing.T) {
	node := predicates.FieldChanged(func(p *corev1.Pod) string { return p.Spec.NodeName })
	pointer := predicates.FieldChanged(func(p *corev1.Pod) *int64 { return p.Spec.ActiveDeadlineSeconds })
	seconds := func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) }
	cases{
		"Changed":   {"the pod was bound to a node", node, updated(pod(), pod(onNode("n1"))), true},
		"Same":      {"something else changed", node, updated(pod(onNode("n1")), pod(onNode("n1"), generation(2))), false},
		"Recreated": {"another object with this name", node, updated(pod(onNode("n1")), pod(onNode("n1"), uid("77aa"))), true},
		"OtherType": {"an object of another type passes", node, updated(&corev1.Node{}, &corev1.Node{}), true},
		"Pointer":   {"a pointer equals only itself", pointer, updated(pod(seconds), pod(seconds)), true},
		"Created":   {"not an update", node, created(pod()), true},
		"Deleted":   {"not an update", node, deleted(pod()), true},
		"Generic":   {"not an update", node, generic(pod()), true},
	}.run(t)
}

func TestSpecChanged(t *testing.T) {
	p := predicates.SpecChanged(func(p *corev1.Pod) corev1.PodSpec { return p.Spec })
	overhead := func(cpu string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	}
	empty := func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{} }
	cases{
		"Changed":    {"a field of the spec changed", p, updated(pod(), pod(onNode("n1"))), true},
		"Same":       {"status or metadata changed", p, updated(pod(), pod(blue, version("101"))), false},
		"Quantity":   {"the same value, written differently", p, updated(pod(overhead("1")), pod(overhead("1000m"))), false},
		"Quantities": {"different values", p, updated(pod(overhead("1")), pod(overhead("2"))), true},
		"Empty":      {"an empty list equals a nil list", p, updated(pod(), pod(empty)), false},
		"Deletion":   {"the start of a deletion changes the generation, not the spec", p, updated(pod(), pod(beingDeleted, generation(2))), false},
		"Recreated":  {"another object with this name", p, updated(pod(), pod(uid("77aa"))), true},
	}.run(t)
}

func TestGenerationChanged(t *testing.T) {
	p := predicates.GenerationChanged()
	cases{
		"Changed":     {"the spec changed", p, updated(pod(), pod(generation(2))), true},
		"Same":        {"status or metadata changed", p, updated(pod(), pod(version("101"))), false},
		"Recreated":   {"another object with this name, also of generation 1", p, updated(pod(), pod(uid("77aa"))), true},
		"None":        {"a kind without generation: any field may have changed", p, updated(pod(generation(0)), pod(generation(0), version("101"))), true},
		"NoneResync":  {"nothing was written", p, updated(pod(generation(0)), pod(generation(0))), false},
		"Created":     {"not an update", p, created(pod()), true},
		"Deleted":     {"not an update", p, deleted(pod()), true},
		"DeletedLate": {"not an update", p, missed(pod()), true},
		"Generic":     {"not an update", p, generic(pod()), true},
	}.run(t)
}

func TestConditionChanged(t *testing.T) {
	p := predicates.ConditionChanged("Ready", func(p *corev1.Pod) []metav1.Condition {
		var list []metav1.Condition
		for _, c := range p.Status.Conditions {
			list = append(list, metav1.Condition{
				Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
				LastTransitionTime: c.LastTransitionTime, ObservedGeneration: c.ObservedGeneration,
			})
		}
		return list
	})
	later := func(p *corev1.Pod) {
		p.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: noon.Add(time.Hour)}
	}
	observed := func(p *corev1.Pod) { p.Status.Conditions[0].ObservedGeneration = 2 }
	other := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "Other"})
	}
	cases{
		"Added":    {"the condition was absent", p, updated(pod(), pod(condition("False", "Starting", ""))), true},
		"Removed":  {"the condition is gone", p, updated(pod(condition("True", "Fine", "")), pod()), true},
		"Status":   {"the status became True", p, updated(pod(condition("False", "A", "")), pod(condition("True", "A", ""))), true},
		"Reason":   {"the reason is another one", p, updated(pod(condition("False", "A", "")), pod(condition("False", "B", ""))), true},
		"Observed": {"the condition is about a newer generation", p, updated(pod(condition("True", "A", "")), pod(condition("True", "A", ""), observed)), true},
		"Message":  {"messages are not compared", p, updated(pod(condition("False", "A", "1 of 3")), pod(condition("False", "A", "2 of 3"))), false},
		"Time":     {"times are not compared", p, updated(pod(condition("True", "A", "")), pod(condition("True", "A", ""), later)), false},
		"Other":    {"another condition changed", p, updated(pod(condition("True", "A", "")), pod(condition("True", "A", ""), other)), false},
		"Created":  {"not an update", p, created(pod()), true},
	}.run(t)
}
