package conditions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestGetAndIsTrue(t *testing.T) {
	type want struct {
		Condition metav1.Condition
		Found     bool
		True      bool
	}
	cases := map[string]struct {
		reason string
		list   []metav1.Condition
		want   want
	}{
		"Nil": {
			reason: "A status that was never written has no conditions.",
		},
		"Absent": {
			reason: "A type is compared as it is written.",
			list:   []metav1.Condition{other("ready"), other("example.com/Ready")},
		},
		"True": {
			reason: "The condition is found wherever it stands.",
			list:   []metav1.Condition{other("First"), ready("True", "Done", "", 1, noon)},
			want:   want{Condition: ready("True", "Done", "", 1, noon), Found: true, True: true},
		},
		"Unknown": {
			reason: "Unknown is not true.",
			list:   []metav1.Condition{ready("Unknown", "Lost", "", 1, noon)},
			want:   want{Condition: ready("Unknown", "Lost", "", 1, noon), Found: true},
		},
		"Duplicate": {
			reason: "The first one counts.",
			list:   []metav1.Condition{ready("False", "Broken", "", 1, noon), ready("True", "Done", "", 1, noon)},
			want:   want{Condition: ready("False", "Broken", "", 1, noon), Found: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			got.Condition, got.Found = conditions.Get(tc.list, "Ready")
			got.True = conditions.IsTrue(tc.list, "Ready")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
