package world

import (
	"maps"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// PassOver notes that the user has written an object while its webhook could not be reached. The caller holds the lock.
func (w *World) PassOver(id request.ObjectID) { w.passedOver = append(w.passedOver, id.String()) }

// WithoutPassedOver returns got with other contents in the objects that PassOver has noted: each has the content that it has without
// faults, but keeps its own status. What the user wrote may lack the defaults of the webhook, and nobody has to add them.
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
