package state

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTimingCause(t *testing.T) {
	shop := func(phase string) State { return State{"Shop a": object{"status": object{"phase": phase}}} }
	tests := map[string]struct {
		reason         string
		baseline, late State
		got            State
		want           string
	}{
		"Few": {
			"One of a few values is named, of all three.", shop("Open"), State{"Shop a": object{}}, shop("Closed"),
			`Shop status.phase: "Open" without faults, nothing if the operator starts late, "Closed" here`,
		},
		"Many": {
			"A text is compared with the run without faults.", shop("since 1"), State{"Shop a": object{}}, shop("since 2"), "Shop status.phase differs",
		},
		"Object": {
			"An object is there or not.", shop("Open"), State{"Shop b": object{}}, State{},
			"Shop: present without faults, absent if the operator starts late, absent here",
		},
		"AsWithoutFaults": {
			"What is as without faults differs from the late start, which is nearer.",
			State{"Shop a": object{"a": "x1", "b": "x1", "c": "x1"}}, State{"Shop a": object{"b": "y1", "c": "y1"}}, State{"Shop a": object{"a": "x1", "b": "y1", "c": "y1"}},
			"Shop a is not empty here",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			verdict := (&References{Baseline: tc.baseline, Late: tc.late}).Judge(tc.got)
			if assert.NotEmpty(t, verdict.Timing) {
				assert.Equal(t, tc.want, verdict.Timing[0].Cause, tc.reason)
			}
		})
	}
}
