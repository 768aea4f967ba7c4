package conditions_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestEditorSet(t *testing.T) {
	type want struct {
		List    []appsv1.DeploymentCondition
		Changed bool
	}
	progressing := appsv1.DeploymentCondition{Type: "Progressing", Status: "True", LastUpdateTime: noon}
	stored := deployed("False", "Starting", "wait", noon, noon)
	cases := map[string]struct {
		reason string
		list   []appsv1.DeploymentCondition
		set    metav1.Condition
		want   want
	}{
		"Created": {
			reason: "Both times are set, and the condition of the Deployment controller is kept.",
			list:   []appsv1.DeploymentCondition{progressing},
			set:    ready("False", "Starting", "wait", 1, noon),
			want:   want{List: []appsv1.DeploymentCondition{progressing, stored}, Changed: true},
		},
		"Same": {
			reason: "The struct has no observedGeneration, so another generation is not a change.",
			list:   []appsv1.DeploymentCondition{stored},
			set:    ready("False", "Starting", "wait", 7, one),
			want:   want{List: []appsv1.DeploymentCondition{stored}},
		},
		"Message": {
			reason: "Only lastUpdateTime changes.",
			list:   []appsv1.DeploymentCondition{stored},
			set:    ready("False", "Starting", "soon", 1, one),
			want:   want{List: []appsv1.DeploymentCondition{deployed("False", "Starting", "soon", one, noon)}, Changed: true},
		},
		"Status": {
			reason: "Both times change.",
			list:   []appsv1.DeploymentCondition{stored},
			set:    ready("True", "Done", "", 1, one),
			want:   want{List: []appsv1.DeploymentCondition{deployed("True", "Done", "", one, one)}, Changed: true},
		},
		"NoReason": {
			reason: "The adapter's Validate decides, and this one allows an empty reason.",
			list:   []appsv1.DeploymentCondition{stored},
			set:    ready("True", "", "", 1, one),
			want:   want{List: []appsv1.DeploymentCondition{deployed("True", "", "", one, one)}, Changed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			editor := deployment
			list := append([]appsv1.DeploymentCondition(nil), tc.list...)
			cached := list
			var got want
			var err error
			if _, got.Changed, err = editor.Set(&list, tc.set); err != nil {
				t.Fatalf("\n%s\nSet(...): %v", tc.reason, err)
			}
			got.List = list
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nSet(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.list, cached); diff != "" {
				t.Errorf("\n%s\nSet(...) wrote into an array that may belong to a cache: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEditorMissingFields(t *testing.T) {
	editor := conditions.NewEditor(lights{})
	list := []light{{Name: "Red", On: true}, {Name: "Green"}}
	same := metav1.Condition{Type: "Red", Status: "True", Reason: "Stop", Message: "wait", ObservedGeneration: 3}
	allocations := testing.AllocsPerRun(100, func() {
		if _, changed, err := editor.Set(&list, same); changed || err != nil {
			t.Fatalf("changed %v, error %v", changed, err)
		}
	})
	if allocations != 0 {
		t.Errorf("want no allocation, got %v", allocations)
	}

	stored, changed, err := editor.Set(&list, metav1.Condition{Type: "Red", Status: "False", Reason: "Go"})
	if diff := cmp.Diff(light{Name: "Red"}, stored); diff != "" || !changed || err != nil {
		t.Errorf("changed %v, error %v, -want, +got:\n%s", changed, err, diff)
	}
	if !editor.Remove(&list, "Red") || editor.Remove(&list, "Red") {
		t.Error("Remove should report a change once")
	}
	if c, ok := editor.Get(list, "Green"); !ok || c.On || editor.IsTrue(list, "Green") {
		t.Errorf("got %v, %v", c, ok)
	}
}

func TestEditorValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		status metav1.ConditionStatus
		want   error
	}{
		"AdapterError":  {"The error of the adapter's Validate is wrapped, so errors.Is finds it.", metav1.ConditionUnknown, errNoMiddle},
		"InvalidStatus": {"An invalid status is refused before the adapter is called.", "Maybe", conditions.ErrInvalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list := []light{{Name: "Red"}}
			_, changed, err := conditions.NewEditor(lights{}).Set(&list, metav1.Condition{Type: "Red", Status: tc.status})
			if changed || !errors.Is(err, tc.want) || !errors.Is(err, conditions.ErrInvalid) {
				t.Errorf("\n%s\nchanged %v, error %v", tc.reason, changed, err)
			}
		})
	}
}

func TestEditorWithClock(t *testing.T) {
	original := conditions.Standard()
	original.WithClock(func() time.Time { return noon.Time })
	var list []metav1.Condition
	stored, _, err := original.Set(&list, ready("True", "Done", "", 1, metav1.Time{}))
	if err != nil || stored.LastTransitionTime.Equal(&noon) {
		t.Errorf("WithClock changed the editor that it was called on: %v, error %v", stored.LastTransitionTime, err)
	}
}
