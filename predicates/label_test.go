package predicates_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/predicates"
)

func TestLabel(t *testing.T) {
	is, folded := predicates.Label("target").Equals("blue"), predicates.Label("target").EqualsFold("blue")
	empty, has := predicates.Label("target").Equals(""), predicates.Label("target").Exists()
	cases{
		"Created":          {"the object matches", is, created(pod(blue)), true},
		"CreatedOther":     {"another value", is, created(pod(green)), false},
		"CreatedUnlabeled": {"the label is absent", is, created(pod(unlabeled)), false},
		"OtherKey":         {"the value belongs to another key", is, created(pod(label("color", "blue"))), false},
		"KeyIsNotFolded":   {"keys are compared exactly", folded, created(pod(label("Target", "blue"))), false},
		"OtherCase":        {"values are compared exactly", is, created(pod(shouted)), false},
		"OtherCaseFolded":  {"EqualsFold ignores case", folded, created(pod(shouted)), true},
		"FoldedOther":      {"EqualsFold compares the whole value", folded, created(pod(label("target", "BLUE2"))), false},
		"EmptyIsNotAbsent": {"an absent label is not an empty value", empty, created(pod(unlabeled)), false},
		"Empty":            {"an empty value is a value", empty, created(pod(label("target", ""))), true},
		"HasEmpty":         {"an empty value counts", has, created(pod(label("target", ""))), true},
		"HasNot":           {"the label is absent", has, created(pod(unlabeled)), false},
		"Enters":           {"the new object matches", is, updated(pod(green), pod(blue)), true},
		"Leaves":           {"the old object matches, and the controller has to clean up", is, updated(pod(blue), pod(green)), true},
		"LeavesByRemoval":  {"the label was removed", is, updated(pod(blue), pod(unlabeled)), true},
		"LeavesFolded":     {"the old object matches in another case", folded, updated(pod(shouted), pod(green)), true},
		"HasLeaves":        {"the old object has the label", has, updated(pod(blue), pod(unlabeled)), true},
		"Stays":            {"both match", is, updated(pod(blue), pod(blue)), true},
		"Neither":          {"neither matches", is, updated(pod(green), pod(unlabeled)), false},
		"Deleted":          {"the final state matches", is, deleted(pod(blue)), true},
		"DeletedOther":     {"the final state does not match", is, deleted(pod(green)), false},
		"DeletedUnknown":   {"the final state may have matched", is, missed(pod(green)), true},
		"Generic":          {"as for a creation", is, generic(pod(blue)), true},
		"GenericOther":     {"as for a creation", is, generic(pod(green)), false},
		"PartialMetadata":  {"Label works for every type", is, created(&metav1.PartialObjectMetadata{ObjectMeta: pod(blue).ObjectMeta}), true},
	}.run(t)
}

func TestLabelChanged(t *testing.T) {
	p := predicates.Label("target").Changed()
	cases{
		"Added":    {"the key was absent", p, updated(pod(), pod(blue)), true},
		"Changed":  {"the value is another one", p, updated(pod(blue), pod(green)), true},
		"Removed":  {"the key is gone", p, updated(pod(blue), pod()), true},
		"Emptied":  {"an empty value is not the same as no value", p, updated(pod(), pod(label("target", ""))), true},
		"Same":     {"nothing changed", p, updated(pod(blue), pod(blue)), false},
		"OtherKey": {"another label changed", p, updated(pod(blue), pod(blue, label("color", "red"))), false},
		"Created":  {"not an update", p, created(pod()), true},
		"Deleted":  {"not an update", p, deleted(pod()), true},
		"Generic":  {"not an update", p, generic(pod()), true},
	}.run(t)
}

// restart returns an annotation.
func restart(at string) func(*corev1.Pod) { return annotation("example.com/restart", at) }

func TestHasAnnotation(t *testing.T) {
	p := predicates.Annotation("example.com/restart").Exists()
	cases{
		"Present": {"any value counts, also an empty one", p, created(pod(restart(""))), true},
		"Absent":  {"the annotation is absent", p, created(pod()), false},
		"Leaves":  {"the old object has it", p, updated(pod(restart("1")), pod()), true},
		"Neither": {"neither has it", p, updated(pod(), pod()), false},
	}.run(t)
}

func TestAnnotationChanged(t *testing.T) {
	p := predicates.Annotation("example.com/restart").Changed()
	cases{
		"Added":    {"the key was absent", p, updated(pod(), pod(restart("1"))), true},
		"Changed":  {"the value is another one", p, updated(pod(restart("1")), pod(restart("2"))), true},
		"Emptied":  {"an empty value is not the same as no value", p, updated(pod(), pod(restart(""))), true},
		"Same":     {"nothing changed", p, updated(pod(restart("1")), pod(restart("1"))), false},
		"OtherKey": {"kubectl changes its own annotation", p, updated(pod(restart("1")), pod(restart("1"), annotation("kubectl", "{}"))), false},
		"Created":  {"not an update", p, created(pod()), true},
	}.run(t)
}
