package state

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/internal/diff"
)

func TestCause(t *testing.T) {
	service := Change{Object: "Service default/web", Want: object{}, Got: diff.Absent{}}
	tests := map[string]struct {
		reason string
		change Change
		want   string
	}{
		"Missing":   {"The name does not count.", service, "Service: present without faults, absent here"},
		"TooMany":   {"Nor does it for an object that is left over.", Change{Object: "Pod a", Want: diff.Absent{}, Got: object{}}, "Pod: absent without faults, present here"},
		"Condition": {"A condition is an item of a list with a name.", Change{Object: "Shop a", Path: "status.conditions[Ready]", Want: diff.Absent{}, Got: object{}}, "Shop status.conditions[Ready]: absent without faults, present here"},
		"Index":     {"The index of an item does not count.", Change{Object: "Pod a", Path: "spec.containers[1].image", Want: "a", Got: "b"}, "Pod spec.containers.image differs"},
		"Few":       {"One of a few values is named.", Change{Object: "Shop a", Path: "status.conditions[Ready].status", Want: "True", Got: "False"}, `Shop status.conditions[Ready].status: "True" without faults, "False" here`},
		"Many":      {"A text is not, since each run may have another one.", Change{Object: "Shop a", Path: "status.conditions[Ready].message", Want: "ready", Got: "3 of 5"}, "Shop status.conditions[Ready].message differs"},
		"Lost":      {"A value is missing.", Change{Object: "Shop a", Path: "status.phase", Want: "Open", Got: diff.Absent{}}, `Shop status.phase: "Open" without faults, nothing here`},
		"Appeared":  {"A value should not be there.", Change{Object: External, Want: nil, Got: []any{"a"}}, "external is not empty here"},
		"Twice":     {"A list has more.", Change{Object: External, Want: []any{"a"}, Got: []any{"a", "a"}}, "external is longer here"},
		"Fewer":     {"A list has less.", Change{Object: External, Want: []any{"a", "b"}, Got: []any{"a"}}, "external is shorter here"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.change.Cause(), tc.reason) })
	}
	status := Change{Object: "Shop a", Path: "status.phase", Want: "Open", Got: "Closed"}
	spec := Change{Object: "Deployment a", Path: "spec.replicas", Want: 1, Got: 2}
	external := Change{Object: External, Want: nil, Got: "a"}
	for _, all := range [][]Change{{status, spec, external, service}, {status, spec, external}, {status, spec}, {status}} {
		v := Verdict{Wrong: all}
		assert.Equal(t, all[len(all)-1], v.Main(), "the cause stands last")
	}
}
