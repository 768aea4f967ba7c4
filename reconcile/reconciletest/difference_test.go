package reconciletest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDifference(t *testing.T) {
	deployment := func(replicas any, conditions ...any) map[string]any {
		return map[string]any{"spec": map[string]any{"replicas": replicas}, "status": map[string]any{"conditions": conditions}}
	}
	available := func(status string) any { return map[string]any{"type": "Available", "status": status} }
	tests := map[string]struct {
		reason    string
		want, got state
		lines     []string
	}{
		"equal": {
			reason: "nothing is said",
			want:   state{"Deployment a": deployment(1)}, got: state{"Deployment a": deployment(1)},
		},
		"missing": {
			reason: "an object that is not there is one line",
			want:   state{"Deployment a": deployment(1)}, got: state{},
			lines: []string{"Deployment a: is missing"},
		},
		"too many": {
			reason: "a leak",
			want:   state{}, got: state{"Deployment a": deployment(1)},
			lines: []string{"Deployment a: should not be there"},
		},
		"a field": {
			reason: "by path",
			want:   state{"Deployment a": deployment(1)}, got: state{"Deployment a": deployment(2)},
			lines: []string{"Deployment a: spec.replicas: want 1, got 2"},
		},
		"an element": {
			reason: "elements of lists are named as Kubernetes keys them",
			want:   state{"Deployment a": deployment(1, available("True"))}, got: state{"Deployment a": deployment(1, available("False"))},
			lines: []string{`Deployment a: status.conditions[Available].status: want "True", got "False"`},
		},
		"a list's length": {
			reason: "the lists are shown",
			want:   state{"Deployment a": deployment(1)}, got: state{"Deployment a": deployment(1, "<x>")},
			lines: []string{`Deployment a: status.conditions: want null, got ["<x>"]`},
		},
		"a field that is gone": {
			reason: "nothing is not null",
			want:   state{"a": map[string]any{"b": nil}}, got: state{"a": map[string]any{}},
			lines: []string{"a: b: want null, got nothing"},
		},
		"a part that is gone": {
			reason: "what was in it is named",
			want:   state{"a": map[string]any{"b": map[string]any{"c": 1}}}, got: state{"a": map[string]any{}},
			lines: []string{"a: b.c: want 1, got nothing"},
		},
		"an empty part that is gone": {
			reason: "may mean something",
			want:   state{"a": map[string]any{"b": map[string]any{}}}, got: state{"a": map[string]any{}},
			lines: []string{"a: b: want {}, got nothing"},
		},
		"not an object": {
			reason: "what is outside may be any value",
			want:   state{"outside": nil}, got: state{"outside": []any{"ann"}},
			lines: []string{`outside: want null, got ["ann"]`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.lines, difference(tc.want, tc.got), tc.reason)
		})
	}
}
