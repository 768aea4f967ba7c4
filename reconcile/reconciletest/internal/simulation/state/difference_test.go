package state

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDifference(t *testing.T) {
	deployment := func(replicas any, conditions ...any) map[string]any {
		return map[string]any{"spec": map[string]any{"replicas": replicas}, "status": map[string]any{"conditions": conditions}}
	}
	available := func(status string) any { return map[string]any{"type": "Available", "status": status} }
	long := func(end string) State {
		return State{"a": map[string]any{"text": strings.Repeat("x", 300) + end + strings.Repeat("y", 300)}}
	}
	tests := map[string]struct {
		reason    string
		want, got State
		lines     []string
	}{
		"Equal": {
			reason: "equal states have no differences",
			want:   State{"Deployment a": deployment(1)}, got: State{"Deployment a": deployment(1)},
		},
		"Missing": {
			reason: "a missing object is one line",
			want:   State{"Deployment a": deployment(1)}, got: State{},
			lines: []string{"Deployment a: present without faults, absent here"},
		},
		"TooMany": {
			reason: "an object that was left behind is one line",
			want:   State{}, got: State{"Deployment a": deployment(1)},
			lines: []string{"Deployment a: absent without faults, present here"},
		},
		"Field": {
			reason: "a field is named by its path",
			want:   State{"Deployment a": deployment(1)}, got: State{"Deployment a": deployment(2)},
			lines: []string{"Deployment a: spec.replicas: 1 without faults, 2 here"},
		},
		"ListItem": {
			reason: "items of lists are named by the key that Kubernetes uses",
			want:   State{"Deployment a": deployment(1, available("True"))}, got: State{"Deployment a": deployment(1, available("False"))},
			lines: []string{`Deployment a: status.conditions[Available].status: "True" without faults, "False" here`},
		},
		"ListLength": {
			reason: "lists of different lengths are shown as a whole",
			want:   State{"Deployment a": deployment(1)}, got: State{"Deployment a": deployment(1, "<x>")},
			lines: []string{`Deployment a: status.conditions: null without faults, ["<x>"] here`},
		},
		"ListItemTooMany": {
			reason: "an item with a key is one difference",
			want:   State{"a": deployment(1, available("True"))}, got: State{"a": deployment(1, available("True"), map[string]any{"type": "Degraded"})},
			lines: []string{"a: status.conditions[Degraded]: absent without faults, present here"},
		},
		"ListItemMissing": {
			reason: "and so is one that is missing",
			want:   State{"a": deployment(1, map[string]any{"type": "Degraded"}, available("True"))}, got: State{"a": deployment(1, available("False"))},
			lines: []string{"a: status.conditions[Degraded]: present without faults, absent here", `a: status.conditions[Available].status: "True" without faults, "False" here`},
		},
		"LongTexts": {
			reason: "texts that are too long are shown from shortly before their difference",
			want:   long("1"), got: long("2"),
			lines: []string{"a: text: …" + strings.Repeat("x", 40) + "1" + strings.Repeat("y", 156) + "… without faults, …" + strings.Repeat("x", 40) + "2" + strings.Repeat("y", 156) + "… here"},
		},
		"LongTextRemoved": {
			reason: "a long text that is gone is shown from its beginning",
			want:   State{"a": map[string]any{"text": strings.Repeat("x", 300)}}, got: State{"a": map[string]any{}},
			lines: []string{`a: text: "` + strings.Repeat("x", 199) + "… without faults, nothing here"},
		},
		"FieldRemoved": {
			reason: "an absent field is not a null",
			want:   State{"a": map[string]any{"b": nil}}, got: State{"a": map[string]any{}},
			lines: []string{"a: b: null without faults, nothing here"},
		},
		"MapRemoved": {
			reason: "each field of a map that is gone is named",
			want:   State{"a": map[string]any{"b": map[string]any{"c": 1}}}, got: State{"a": map[string]any{}},
			lines: []string{"a: b.c: 1 without faults, nothing here"},
		},
		"EmptyMapRemoved": {
			reason: "an empty map may mean something",
			want:   State{"a": map[string]any{"b": map[string]any{}}}, got: State{"a": map[string]any{}},
			lines: []string{"a: b: {} without faults, nothing here"},
		},
		"External": {
			reason: "what is outside of the cluster may be any value",
			want:   State{"external": nil}, got: State{"external": []any{"ann"}},
			lines: []string{`external: null without faults, ["ann"] here`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.lines, Difference(tc.want, tc.got), tc.reason)
		})
	}
}
