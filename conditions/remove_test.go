package conditions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestRemove(t *testing.T) {
	type want struct {
		List    []metav1.Condition
		Changed bool
	}
	cases := map[string]struct {
		reason string
		list   []metav1.Condition
		want   want
	}{
		"Nil": {
			reason: "Nothing to remove leaves nil: empty instead would be a difference to write.",
		},
		"Absent": {
			reason: "Removing what is gone is no change.",
			list:   []metav1.Condition{other("B"), other("A")},
			want:   want{List: []metav1.Condition{other("B"), other("A")}},
		},
		"Middle": {
			reason: "The others keep their order.",
			list:   []metav1.Condition{other("B"), other("Ready"), other("A")},
			want:   want{List: []metav1.Condition{other("B"), other("A")}, Changed: true},
		},
		"Last": {
			reason: "An empty list is not nil, which a required list may not be.",
			list:   []metav1.Condition{other("Ready")},
			want:   want{List: []metav1.Condition{}, Changed: true},
		},
		"Duplicates": {
			reason: "One that stayed behind would come back as the first.",
			list:   []metav1.Condition{other("Ready"), other("A"), other("Ready")},
			want:   want{List: []metav1.Condition{other("A")}, Changed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cached := append([]metav1.Condition(nil), tc.list...)
			list := cached
			var got want
			got.Changed = conditions.Remove(&list, "Ready")
			got.List = list
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRemove(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(append([]metav1.Condition(nil), tc.list...), cached); diff != "" {
				t.Errorf("\n%s\nRemove(...) wrote into an array that a cache may share: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemoveWithoutAList(t *testing.T) {
	if conditions.Remove(nil, "Ready") {
		t.Error("Remove(nil, ...) reports a change")
	}
}
