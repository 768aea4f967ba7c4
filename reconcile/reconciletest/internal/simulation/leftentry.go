package simulation

import (
	"fmt"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// noteLeftEntries inserts a finding if all objects that the user created are gone, and the operator leaves an entry in an object of
// somebody else, such as a key of a shared ConfigMap, a subject of a RoleBinding or a finalizer. It looks at the run without faults. A
// comparison of runs cannot find that: nearly all runs leave the same. It skips objects that somebody else also writes in the run.
func (e *explorer) noteLeftEntries() {
	if !e.usersObjectsAreGone() {
		return
	}
	left := e.leftEntries()
	if len(left) == 0 {
		return
	}
	e.note(Failure{Kind: kinds.LeavesEntry, Cause: "an entry is left in an object of others", Err: fmt.Errorf("everything that the user has created is deleted, and the operator leaves this in objects that it has not created:\n  %s\n"+
		"Remove it before the finalizer is removed. If it is meant to stay, leave it out of the comparison by Ignore, or add "+
		"reconciletest.Findings.LeavesEntry to Options.SkipFindings", strings.Join(left, "\n  "))})
}

// leftEntries returns the entries that the operator has added to objects that it has not created, and that are still there in the end. Objects
// that somebody else has written too are left out.
func (e *explorer) leftEntries() (left []string) {
	begun, ended := e.beginAndEnd()
	of := &e.baseline.Operations
	changes := map[string]int{}
	all := e.baseline.Server.Changes(e.baseline.Phases[0].Revision)
	for i := range all {
		changes[all[i].GVK.Kind+" "+state.NameOf(all[i].Key)]++
	}
	for _, id := range result.SortedIDs(of.Writes) {
		key := id.String()
		if of.Created[id] || begun[key] == nil || ended[key] == nil || changes[key] > of.Writes[id] {
			continue
		}
		left = append(left, state.AddedEntries(key, begun, ended)...)
	}
	return left
}
