package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

func TestShare(t *testing.T) {
	after := func(action int, kind kinds.Fault) Fault {
		return Fault{Kind: kind, At: "update Shop a", Since: Since{Action: action, Nth: 1}}
	}
	tests := map[string]struct {
		reason string
		faults []Fault
		want   [][]int // the indexes of the faults of each run
	}{
		"None":            {reason: "without faults there is no run"},
		"Actions":         {"one fault for each action", []Fault{after(1, kinds.Timeout), after(2, kinds.Conflict), after(3, kinds.Timeout)}, [][]int{{0, 1, 2}}},
		"SameAction":      {"the second needs a run of its own", []Fault{after(1, kinds.Timeout), after(1, kinds.Conflict)}, [][]int{{0}, {1}}},
		"AnyOrder":        {"an earlier action can come later", []Fault{after(3, kinds.Timeout), after(1, kinds.Conflict)}, [][]int{{0, 1}}},
		"Crashes":         {"crashes share runs with crashes", []Fault{after(1, kinds.CrashAfter), after(2, kinds.CrashBefore)}, [][]int{{0, 1}}},
		"CrashAndTimeout": {"the crash ends what the timeout has left in memory", []Fault{after(1, kinds.Timeout), after(2, kinds.CrashAfter)}, [][]int{{0}, {1}}},
		"NextAction": {
			"it brings the next action forward", []Fault{after(1, kinds.CrashDowntime), after(2, kinds.CrashAfter), after(3, kinds.CrashAfter)}, [][]int{{0, 2}, {1}},
		},
		"Recreation": {"it brings the next action forward", []Fault{after(1, kinds.MissedDeletion), after(2, kinds.Timeout)}, [][]int{{0}, {1}}},
		"Past":       {"after it the run is judged less strictly", []Fault{after(2, kinds.TimeTravel), after(1, kinds.CrashAfter), after(3, kinds.CrashAfter)}, [][]int{{0, 1}, {2}}},
		"PassedOver": {"after it the run is judged less strictly", []Fault{after(1, kinds.WebhookPassedOver), after(2, kinds.Timeout)}, [][]int{{0}, {1}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := make([][]Fault, len(tc.want))
			for i, run := range tc.want {
				for _, index := range run {
					want[i] = append(want[i], tc.faults[index])
				}
			}
			assert.Equal(t, want, Share(tc.faults), tc.reason)
		})
	}
}

// A run with another fault has more requests of the same name. A fault still happens at its place after the same action.
func TestReachCountsSinceAnAction(t *testing.T) {
	at := Point{Name: "update Shop a"}
	first := New(nil)
	first.BeginAction(false)
	first.Reach(at)
	first.BeginAction(false)
	_, second := first.Reach(at)
	fault := second.Fault(kinds.Timeout)
	assert.Equal(t, Fault{Kind: kinds.Timeout, At: at.Name, Nth: 2, Since: Since{2, 1}}, fault)

	p := New([]Fault{fault})
	p.BeginAction(false)
	p.Reach(at)
	kind, _ := p.Reach(at) // a retry after another fault
	assert.Empty(t, kind)
	p.BeginAction(false)
	kind, third := p.Reach(at)
	assert.Equal(t, kinds.Timeout, kind)
	p.NoteInjected(kind, third)
	assert.Equal(t, 3, Placed([]Fault{fault}, p.Injected)[0].Nth, "a replay counts from the beginning of the run")

	replayed := New([]Fault{{Kind: kinds.Timeout, At: at.Name, Nth: 2}})
	replayed.BeginAction(false)
	replayed.Reach(at)
	kind, _ = replayed.Reach(at)
	assert.Equal(t, kinds.Timeout, kind, "a fault that was parsed counts from the beginning of the run")
}
