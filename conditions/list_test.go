package conditions_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

type named []metav1.Condition

func TestBind(t *testing.T) {
	var (
		plain    []metav1.Condition
		own      named
		deployed []appsv1.DeploymentCondition
	)
	cases := map[string]struct {
		reason string
		binder conditions.Binder
		list   any
		length func() int
		want   string // a part of the error
	}{
		"Standard": {
			reason: "Most objects have a []metav1.Condition.",
			binder: conditions.Standard(), list: &plain, length: func() int { return len(plain) },
		},
		"NamedSlice": {
			reason: "A named slice type converts to the same list.",
			binder: conditions.Standard(), list: &own, length: func() int { return len(own) },
		},
		"Adapter": {
			reason: "An adapter makes a list of another condition struct.",
			binder: deployment, list: &deployed, length: func() int { return len(deployed) },
		},
		"OtherStruct": {
			reason: "The error names the type that was passed and the type that is needed.",
			binder: conditions.Standard(), list: &deployed, want: "cannot use a *[]v1.DeploymentCondition as a list of conditions: pass a *[]v1.Condition",
		},
		"NotAPointer": {
			reason: "A slice that is passed by value cannot be changed.", binder: conditions.Standard(), list: plain, want: "cannot use a []v1.Condition as",
		},
		"NilPointer": {
			reason: "A nil pointer has no list to change.", binder: conditions.Standard(), list: (*[]metav1.Condition)(nil), want: "not nil",
		},
		"Nil": {reason: "A nil interface is an error, not a panic.", binder: conditions.Standard(), list: nil, want: "cannot use a <nil> as"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list, err := tc.binder.Bind(tc.list)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("\n%s\nBind(...): want an error with %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("\n%s\nBind(...): %v", tc.reason, err)
			}
			want := ready("True", "Done", "ok", 0, noon)
			stored, changed, err := list.Set(want)
			if diff := cmp.Diff(want, stored); diff != "" || !changed || err != nil {
				t.Errorf("\n%s\nSet(...): changed %v, error %v, -want, +got:\n%s", tc.reason, changed, err, diff)
			}
			if got, ok := list.Get("Ready"); !ok || cmp.Diff(want, got) != "" || tc.length() != 1 {
				t.Errorf("\n%s\nGet(...): %v, %v, and the list has %d conditions", tc.reason, got, ok, tc.length())
			}
			if diff := cmp.Diff([]metav1.Condition{want}, list.All()); diff != "" {
				t.Errorf("\n%s\nAll(): -want, +got:\n%s", tc.reason, diff)
			}
			if !list.Remove("Ready") || list.Remove("Ready") || tc.length() != 0 {
				t.Errorf("\n%s\nRemove(...) should change the list once", tc.reason)
			}
			if got, ok := list.Get("Ready"); ok || got != (metav1.Condition{}) {
				t.Errorf("\n%s\nGet(...) of an absent condition: %v, %v", tc.reason, got, ok)
			}
		})
	}
}
