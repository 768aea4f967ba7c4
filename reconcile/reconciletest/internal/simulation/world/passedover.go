package world

import (
	"maps"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// PassOver notes that the user has written an object while its webhook could not be reached. The caller holds the lock.
func (w *World) PassOver(id request.ObjectID) { w.passedOver = append(w.passedOver, id.String()) }

// WithoutPassedOver prepares the state got for the comparison with the state without, which a run without faults has reached. If the user
// has written an object while its webhook could not be reached (see PassOver), the object may lack the webhook's defaults, and nobody has
// to add them. So it gets its content from without, and keeps only its own status.
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
