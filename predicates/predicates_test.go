package predicates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/predicates"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	blue      = label("target", "blue")
	shouted   = label("target", "BLUE")
	green     = label("target", "green")
	unlabeled = func(*corev1.Pod) {}
)

type cases map[string]struct {
	reason    string
	predicate predicate.Predicate
	event     any
	want      bool
}

func (cs cases) run(t *testing.T) {
	t.Helper()
	for name, tc := range cs {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, passes(tc.predicate, tc.event), tc.reason)
		})
	}
}

func TestLabel(t *testing.T) {
	is, folded := predicates.Label("target", "blue"), predicates.Label("target", "blue", predicates.FoldCase())
	empty, has := predicates.Label("target", ""), predicates.HasLabel("target")
	cases{
		"Created":            {"a match", is, created(pod(blue)), true},
		"CreatedOther":       {"another value", is, created(pod(green)), false},
		"CreatedUnlabeled":   {"served by nobody", is, created(pod(unlabeled)), false},
		"OtherKey":           {"the key counts", is, created(pod(label("color", "blue"))), false},
		"KeyIsNotFolded":     {"keys are compared as they are", folded, created(pod(label("Target", "blue"))), false},
		"OtherCase":          {"the value counts as it is", is, created(pod(shouted)), false},
		"OtherCaseFolded":    {"unless case is folded", folded, created(pod(shouted)), true},
		"FoldedOther":        {"folding is no prefix match", folded, created(pod(label("target", "BLUE2"))), false},
		"EmptyIsNotAbsent":   {"an object without the label has no empty value", empty, created(pod(unlabeled)), false},
		"Empty":              {"an empty value is a value", empty, created(pod(label("target", ""))), true},
		"HasEmpty":           {"any value is one", has, created(pod(label("target", ""))), true},
		"HasNot":             {"no label", has, created(pod(unlabeled)), false},
		"Enters":             {"the new object matches", is, updated(pod(green), pod(blue)), true},
		"Leaves":             {"the old object matches: somebody has to clean up", is, updated(pod(blue), pod(green)), true},
		"LeavesByRemoval":    {"the label was removed", is, updated(pod(blue), pod(unlabeled)), true},
		"LeavesFolded":       {"the old object matches in another case", folded, updated(pod(shouted), pod(green)), true},
		"HasLeaves":          {"the label was removed", has, updated(pod(blue), pod(unlabeled)), true},
		"Stays":              {"both match", is, updated(pod(blue), pod(blue)), true},
		"NeverIn":            {"neither matches", is, updated(pod(green), pod(unlabeled)), false},
		"Deleted":            {"the final state matches", is, deleted(pod(blue)), true},
		"DeletedOther":       {"the final state does not", is, deleted(pod(green)), false},
		"DeletedUnknown":     {"it may have matched in the end", is, missed(pod(green)), true},
		"Generic":            {"as a creation", is, generic(pod(blue)), true},
		"GenericOther":       {"as a creation", is, generic(pod(green)), false},
		"OnlyMetadataIsRead": {"works for every type", is, created(&metav1.PartialObjectMetadata{ObjectMeta: pod(blue).ObjectMeta}), true},
	}.run(t)
}

func TestLabelChanged(t *testing.T) {
	p := predicates.LabelChanged("target")
	cases{
		"Added":    {"from none", p, updated(pod(), pod(blue)), true},
		"Changed":  {"to another value", p, updated(pod(blue), pod(green)), true},
		"Removed":  {"to none", p, updated(pod(blue), pod()), true},
		"Emptied":  {"an empty value is not none", p, updated(pod(), pod(label("target", ""))), true},
		"Same":     {"nothing changed", p, updated(pod(blue), pod(blue)), false},
		"OtherKey": {"another label", p, updated(pod(blue), pod(blue, label("color", "red"))), false},
		"Created":  {"no update", p, created(pod()), true},
		"Deleted":  {"no update", p, deleted(pod()), true},
		"Generic":  {"no update", p, generic(pod()), true},
	}.run(t)
}

func TestAnnotation(t *testing.T) {
	restart := func(at string) func(*corev1.Pod) { return annotation("example.com/restart", at) }
	changed, has := predicates.AnnotationChanged("example.com/restart"), predicates.HasAnnotation("example.com/restart")
	cases{
		"Added":      {"from none", changed, updated(pod(), pod(restart("1"))), true},
		"Changed":    {"to another value", changed, updated(pod(restart("1")), pod(restart("2"))), true},
		"Emptied":    {"an empty value is not none", changed, updated(pod(), pod(restart(""))), true},
		"Same":       {"nothing changed", changed, updated(pod(restart("1")), pod(restart("1"))), false},
		"OtherKey":   {"kubectl writes its own", changed, updated(pod(restart("1")), pod(restart("1"), annotation("kubectl", "{}"))), false},
		"Created":    {"no update", changed, created(pod()), true},
		"Has":        {"with any value", has, created(pod(restart(""))), true},
		"HasNot":     {"without", has, created(pod()), false},
		"HasLeaves":  {"the old object has it", has, updated(pod(restart("1")), pod()), true},
		"HasNeither": {"neither has it", has, updated(pod(), pod()), false},
	}.run(t)
}

func TestGenerationChanged(t *testing.T) {
	p := predicates.GenerationChanged()
	cases{
		"Changed":     {"the spec changed", p, updated(pod(), pod(generation(2))), true},
		"Same":        {"a status or metadata was written", p, updated(pod(), pod(version("101"))), false},
		"Recreated":   {"another object of this name, and first generation too", p, updated(pod(), pod(uid("77aa"))), true},
		"None":        {"a kind without generation: nothing is known", p, updated(pod(generation(0)), pod(generation(0), version("101"))), true},
		"NoneResync":  {"no write at all", p, updated(pod(generation(0)), pod(generation(0))), false},
		"Created":     {"no update", p, created(pod()), true},
		"Deleted":     {"no update", p, deleted(pod()), true},
		"DeletedLate": {"no update", p, missed(pod()), true},
		"Generic":     {"no update", p, generic(pod()), true},
	}.run(t)
}

func TestFieldChanged(t *testing.T) {
	node := predicates.FieldChanged(func(p *corev1.Pod) string { return p.Spec.NodeName })
	pointer := predicates.FieldChanged(func(p *corev1.Pod) *int64 { return p.Spec.ActiveDeadlineSeconds })
	seconds := func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) }
	cases{
		"Changed":   {"the pod was bound to a node", node, updated(pod(), pod(onNode("n1"))), true},
		"Same":      {"something else changed", node, updated(pod(onNode("n1")), pod(onNode("n1"), generation(2))), false},
		"Recreated": {"another object of this name", node, updated(pod(onNode("n1")), pod(onNode("n1"), uid("77aa"))), true},
		"OtherType": {"the watch is for another type: an event too many", node, updated(&corev1.Node{}, &corev1.Node{}), true},
		"Pointer":   {"a pointer is equal to itself only", pointer, updated(pod(seconds), pod(seconds)), true},
		"Created":   {"no update", node, created(pod()), true},
		"Deleted":   {"no update", node, deleted(pod()), true},
		"Generic":   {"no update", node, generic(pod()), true},
	}.run(t)
}

func TestSpecChanged(t *testing.T) {
	p := predicates.SpecChanged(func(p *corev1.Pod) corev1.PodSpec { return p.Spec })
	overhead := func(cpu string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	}
	empty := func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{} }
	cases{
		"Changed":   {"a field of it", p, updated(pod(), pod(onNode("n1"))), true},
		"Same":      {"a status or metadata was written", p, updated(pod(), pod(blue, version("101"))), false},
		"Quantity":  {"one value in two spellings", p, updated(pod(overhead("1")), pod(overhead("1000m"))), false},
		"Quantity2": {"two values", p, updated(pod(overhead("1")), pod(overhead("2"))), true},
		"Empty":     {"an empty list is as none", p, updated(pod(), pod(empty)), false},
		"Deletion":  {"a deletion changes the generation, and not the spec", p, updated(pod(), pod(beingDeleted, generation(2))), false},
		"Recreated": {"another object of this name", p, updated(pod(), pod(uid("77aa"))), true},
	}.run(t)
}

func TestMatching(t *testing.T) {
	p := predicates.Matching(func(p *corev1.Pod) bool { return p.Spec.NodeName == "n1" })
	cases{
		"Enters":    {"the new object matches", p, updated(pod(), pod(onNode("n1"))), true},
		"Leaves":    {"the old object matches", p, updated(pod(onNode("n1")), pod(onNode("n2"))), true},
		"Neither":   {"neither matches", p, updated(pod(), pod(onNode("n2"))), false},
		"Unknown":   {"it may have matched in the end", p, missed(pod()), true},
		"OtherType": {"the watch is for another type: an event too many", p, created(&corev1.Node{}), true},
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
		"Comes":    {"from none", p, updated(pod(), pod(condition("False", "Starting", ""))), true},
		"Goes":     {"to none", p, updated(pod(condition("True", "Fine", "")), pod()), true},
		"Status":   {"became True", p, updated(pod(condition("False", "A", "")), pod(condition("True", "A", ""))), true},
		"Reason":   {"fails for another reason", p, updated(pod(condition("False", "A", "")), pod(condition("False", "B", ""))), true},
		"Observed": {"true of the new generation too", p, updated(pod(condition("True", "A", "")), pod(condition("True", "A", ""), observed)), true},
		"Message":  {"words do not count", p, updated(pod(condition("False", "A", "1 of 3")), pod(condition("False", "A", "2 of 3"))), false},
		"Time":     {"times do not count", p, updated(pod(condition("True", "A", "")), pod(condition("True", "A", ""), later)), false},
		"Other":    {"another condition", p, updated(pod(condition("True", "A", "")), pod(condition("True", "A", ""), other)), false},
		"Created":  {"no update", p, created(pod()), true},
	}.run(t)
}

func TestDeletionStarted(t *testing.T) {
	p := predicates.DeletionStarted()
	cases{
		"Started":        {"a finalizer holds it", p, updated(pod(), pod(beingDeleted)), true},
		"GoesOn":         {"another finalizer went", p, updated(pod(beingDeleted), pod(beingDeleted)), false},
		"Lives":          {"any update", p, updated(pod(), pod(generation(2))), false},
		"WhileDown":      {"it began while the operator was down", p, created(pod(beingDeleted)), true},
		"Created":        {"a new object", p, created(pod()), false},
		"Recreated":      {"the former one is gone, and no event says so", p, updated(pod(), pod(uid("77aa"))), true},
		"Deleted":        {"without finalizers there is no update before", p, deleted(pod()), true},
		"Generic":        {"being deleted", p, generic(pod(beingDeleted)), true},
		"GenericLives":   {"not being deleted", p, generic(pod()), false},
		"NothingBefore":  {"an incomplete event", p, updated(nil, pod(beingDeleted)), true},
		"NothingAfter":   {"an incomplete event", p, updated(pod(), nil), false},
		"GenerationToo":  {"the API server bumps it", predicates.GenerationChanged(), updated(pod(), pod(beingDeleted, generation(2))), true},
		"NotSpecChanged": {"the spec is the same", predicates.SpecChanged(func(p *corev1.Pod) corev1.PodSpec { return p.Spec }), updated(pod(), pod(beingDeleted)), false},
	}.run(t)
}

func TestNamespaces(t *testing.T) {
	p, all := predicates.Namespaces("shop", "bank"), predicates.Namespaces()
	elsewhere := func(p *corev1.Pod) { p.Namespace = "attic" }
	cluster := func(p *corev1.Pod) { p.Namespace = "" }
	cases{
		"In":        {"named", p, created(pod()), true},
		"Out":       {"not named", p, updated(pod(elsewhere), pod(elsewhere)), false},
		"Unknown":   {"a namespace never changes, whatever the final state is", p, missed(pod(elsewhere)), false},
		"Cluster":   {"no namespace is none of these", p, generic(pod(cluster)), false},
		"ClusterIn": {"unless named", predicates.Namespaces(""), generic(pod(cluster)), true},
		"All":       {"an empty flag", all, deleted(pod(elsewhere)), true},
	}.run(t)
}

func TestNilObjectsAreDropped(t *testing.T) {
	shard, err := predicates.Shard(0, 1)
	require.NoError(t, err)
	all := map[string]predicate.Predicate{
		"Label":             predicates.Label("a", "b"),
		"HasLabel":          predicates.HasLabel("a"),
		"LabelChanged":      predicates.LabelChanged("a"),
		"HasAnnotation":     predicates.HasAnnotation("a"),
		"AnnotationChanged": predicates.AnnotationChanged("a"),
		"GenerationChanged": predicates.GenerationChanged(),
		"FieldChanged":      predicates.FieldChanged(func(p *corev1.Pod) string { return p.Name }),
		"SpecChanged":       predicates.SpecChanged(func(p *corev1.Pod) corev1.PodSpec { return p.Spec }),
		"Matching":          predicates.Matching(func(p *corev1.Pod) bool { return p.Name == "" }),
		"ConditionChanged":  predicates.ConditionChanged("Ready", func(p *corev1.Pod) []metav1.Condition { _ = p.Status; return nil }),
		"DeletionStarted":   predicates.DeletionStarted(),
		"PauseChanged":      predicates.PauseChanged(),
		"NotPaused":         predicates.NotPaused(time.Now),
		"Namespaces":        predicates.Namespaces(),
		"Shard":             shard,
	}
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			for _, none := range []client.Object{nil, (*corev1.Pod)(nil)} {
				for _, e := range []any{created(none), updated(none, none), deleted(none), missed(none), generic(none)} {
					require.False(t, passes(p, e), "%T of %#v", e, none)
				}
				require.NotPanics(t, func() {
					passes(p, updated(pod(), none))
					passes(p, updated(none, pod()))
				})
			}
		})
	}
}
