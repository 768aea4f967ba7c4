package world

import (
	"maps"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// PassOver notes that the user has written an object for which a webhook was passed over. The caller holds the lock.
func (w *World) PassOver(id request.ObjectID) { w.passedOver = append(w.passedOver, id.String()) }

// WithoutPassedOver returns got, with a change in the objects for which a webhook was passed over: each has the content from the state
// without faults, and its own status. What the user wrote may lack defaults, and nobody has to add them.
func (w *World) WithoutPassedOver(got, without state.State) state.State {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if len(w.passedOver) == 0 {
		return got
	}
	got = maps.Clone(got)
	for _, name := range w.passedOver {
		is, exists := got[name].(map[string]any)
		was, existed := without[name].(map[string]any)
		if !exists || !existed {
			continue
		}
		same := maps.Clone(was)
		if delete(same, "status"); is["status"] != nil {
			same["status"] = is["status"]
		}
		got[name] = same
	}
	return got
}
