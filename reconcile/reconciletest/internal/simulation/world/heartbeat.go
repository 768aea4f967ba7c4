package world

import (
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// IsHeartbeat reports whether a change is only in fields that the scenario names as heartbeats.
func (w *World) IsHeartbeat(c *memoryserver.Change) bool {
	return w.Heartbeats != nil && c.Old != nil && c.New != nil && state.EqualWithout(c.Old, c.New, w.Heartbeats)
}

// lastChange returns the server's revision after the last change that is not a heartbeat. The caller holds the lock.
func (w *World) lastChange() int64 {
	if w.Heartbeats == nil {
		return w.Server.Revision()
	}
	changes := w.Server.Changes(w.beatsUntil)
	for i := range changes {
		w.beatsUntil = changes[i].Revision
		if !w.IsHeartbeat(&changes[i]) {
			w.changed = w.beatsUntil
		}
	}
	return w.changed
}

// earliestReal and latestReal are the limits of times that count as times of the real clock. They are around the start of the test program,
// and far from the virtual clock.
var (
	programStart = time.Now()
	earliestReal = programStart.Add(-24 * time.Hour)
	latestReal   = programStart.Add(24 * time.Hour)
)

// IsRealTime reports whether a time comes from the real clock, and not from the virtual one.
func IsRealTime(t time.Time) bool { return t.After(earliestReal) && t.Before(latestReal) }

// realTimeIn returns the path at which a change adds a time of the real clock, "" if there is none.
func realTimeIn(c *memoryserver.Change) string {
	if c.New == nil {
		return ""
	}
	path := state.FindString(c.New, isRealTimeText)
	if path == "" || c.Old != nil && state.FindString(c.Old, isRealTimeText) != "" {
		return ""
	}
	return path
}

func isRealTimeText(text string) bool {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > len("2006-01-02T15:04:05.000000000+00:00") {
		return false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && IsRealTime(t)
}
