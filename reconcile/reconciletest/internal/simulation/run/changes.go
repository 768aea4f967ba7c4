package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// lastChange finds the last request with one of the names that changed an object. It returns the last update of that object that is not a
// heartbeat. It returns nil if there is none.
func lastChange(w *world.World, names []string) *memoryserver.Change {
	request := w.Log.LastChange(names)
	if request == nil {
		return nil
	}
	changes := w.Server.Changes(0)
	for i := range slices.Backward(changes) {
		if c := &changes[i]; c.GVK == request.Kind && c.Key == request.Object && c.Old != nil && c.New != nil && !w.IsHeartbeat(c) {
			return c
		}
	}
	return nil
}

// fieldsOf returns the fields that a change has changed, as the end of an error message. It returns "" if there are none.
func fieldsOf(c *memoryserver.Change) string {
	if c == nil || c.Old == nil || c.New == nil {
		return ""
	}
	lines := state.ChangedFields(c.Old, c.New)
	if len(lines) == 0 {
		return ""
	}
	return ":\n  " + strings.Join(lines, "\n  ")
}

// heartbeatRemedy says how to leave out the changed fields of a change, as the end of an error message. It returns "" if they cannot be a
// heartbeat: a heartbeat changes only the status, annotations, or a Lease.
func heartbeatRemedy(c *memoryserver.Change) string {
	if c == nil || c.Old == nil || c.New == nil {
		return ""
	}
	paths := state.ChangedPaths(c.Old, c.New)
	for _, path := range paths {
		if !strings.HasPrefix(path, "status.") && !strings.HasPrefix(path, "metadata.annotations") && c.GVK.Kind != "Lease" {
			return ""
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return fmt.Sprintf("\nIf that is a heartbeat, name it in the scenario: Heartbeats: map[string][]string{%q: {\"%s\"}}", c.GVK.Kind, strings.Join(paths, `", "`))
}
