package predicates_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/predicates"
)

func TestMatching(t *testing.T) {
	p := predicates.Matching(func(p *corev1.Pod) bool { return p.Spec.NodeName == "n1" })
	cases{
		"Enters":    {"the new object matches", p, updated(pod(), pod(onNode("n1"))), true},
		"Leaves":    {"the old object matches", p, updated(pod(onNode("n1")), pod(onNode("n2"))), true},
		"Neither":   {"neither matches", p, updated(pod(), pod(onNode("n2"))), false},
		"Unknown":   {"the final state may have matched", p, missed(pod()), true},
		"OtherType": {"an object of another type passes", p, created(&corev1.Node{}), true},
	}.run(t)
}

func TestNamespaces(t *testing.T) {
	p, all := predicates.Namespaces("shop", "bank"), predicates.Namespaces()
	elsewhere := func(p *corev1.Pod) { p.Namespace = "attic" }
	cluster := func(p *corev1.Pod) { p.Namespace = "" }
	cases{
		"In":        {"the namespace is named", p, created(pod()), true},
		"Out":       {"the namespace is not named", p, updated(pod(elsewhere), pod(elsewhere)), false},
		"Unknown":   {"a namespace never changes, so the last known state decides", p, missed(pod(elsewhere)), false},
		"Cluster":   {"a cluster-scoped object is in none of them", p, generic(pod(cluster)), false},
		"ClusterIn": {"unless the empty namespace is named", predicates.Namespaces(""), generic(pod(cluster)), true},
		"All":       {"no argument passes everything", all, deleted(pod(elsewhere)), true},
	}.run(t)
}

// TestComposition shows how And, Or and Not behave with filters that look at the old and the new object.
func TestComposition(t *testing.T) {
	isBlue, isLarge := predicates.Label("target").Equals("blue"), predicates.Label("size").Equals("large")
	large := label("size", "large")
	both := predicate.And(isBlue, isLarge)
	notBlue := predicate.Not(isBlue)
	notBlueByFunction := predicates.Matching(func(p *corev1.Pod) bool { return p.Labels["target"] != "blue" })
	narrow := predicate.And(isBlue, predicates.GenerationChanged())
	wide := predicate.And(isBlue, predicate.Or(predicates.GenerationChanged(), predicates.Label("target").Changed()))
	notChanged := predicate.Not(predicates.GenerationChanged())
	eitherBlue := predicate.Or(isBlue, predicates.Matching(func(p *corev1.Pod) bool { return p.Annotations["served-by"] == "blue" }))
	servedByBlue := annotation("served-by", "blue")
	cases{
		"AndOfFilters":         {"both filters match both objects", both, updated(pod(blue, large), pod(blue, large)), true},
		"AndOfFiltersEachHalf": {"surprise: no object matches both, but the old one matches the first and the new one the second", both, updated(pod(blue), pod(large)), true},
		"AndInOneFunction":     {"to compare one object at a time, use one function", predicates.Matching(func(p *corev1.Pod) bool { return p.Labels["target"] == "blue" && p.Labels["size"] == "large" }), updated(pod(blue), pod(large)), false},

		"NotFilterEnters":  {"surprise: an object that becomes blue is dropped, though it was not blue", notBlue, updated(pod(green), pod(blue)), false},
		"NotFilterLeaves":  {"surprise: an object that stops being blue is dropped", notBlue, updated(pod(blue), pod(green)), false},
		"NotFilterNever":   {"an object that never was blue passes", notBlue, updated(pod(green), pod(green)), true},
		"NotFilterUnknown": {"surprise: a deletion that was missed passes the filter, so its negation drops it", notBlue, missed(pod(green)), false},
		"FunctionEnters":   {"the old object is not blue", notBlueByFunction, updated(pod(green), pod(blue)), true},
		"FunctionLeaves":   {"the new object is not blue", notBlueByFunction, updated(pod(blue), pod(green)), true},
		"FunctionStays":    {"both are blue", notBlueByFunction, updated(pod(blue), pod(blue)), false},
		"FunctionUnknown":  {"the final state may have matched", notBlueByFunction, missed(pod(blue)), true},

		"GenerationLosesLeaving":  {"surprise: a change of labels does not change the generation", narrow, updated(pod(blue), pod(green)), false},
		"GenerationLosesEntering": {"surprise: a change of labels does not change the generation", narrow, updated(pod(green), pod(blue)), false},
		"WithLabelLeaving":        {"a change of the label passes too", wide, updated(pod(blue), pod(green)), true},
		"WithLabelEntering":       {"a change of the label passes too", wide, updated(pod(green), pod(blue)), true},
		"WithLabelStatus":         {"a write of the status is dropped", wide, updated(pod(blue), pod(blue, version("101"))), false},
		"WithLabelOthers":         {"a change of labels of other objects is dropped", wide, updated(pod(green), pod(label("target", "red"))), false},
		"WithLabelCreated":        {"the creation of a matching object passes", wide, created(pod(blue)), true},
		"WithLabelDeleted":        {"the deletion of another object is dropped", wide, deleted(pod(green)), false},

		"NotChangeCreated": {"surprise: creations, which always pass, are dropped", notChanged, created(pod()), false},
		"NotChangeUpdated": {"updates without a change pass", notChanged, updated(pod(), pod(version("101"))), true},

		"OrOfFilters": {"the label changed while the operator was down; the annotation still matches", eitherBlue, created(pod(green, servedByBlue)), true},
	}.run(t)
}
