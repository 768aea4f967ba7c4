package corpus

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// counts is what was checked, so that a test that checks nothing fails.
type counts struct {
	subjects atomic.Int64 // manifests, in two forms each
	settled  atomic.Int64 // subjects with a rewritten difference

	fields    atomic.Int64 // values, structs, lists and maps of ours that were to be changed by hand
	refused   atomic.Int64 // changes that the API server refused, with every value
	noticed   atomic.Int64 // changes that were noticed without a write
	repaired  atomic.Int64
	stuck     atomic.Int64 // changes that could not be repaired, see unrepairable
	leftovers atomic.Int64 // repairs that left an item of somebody else

	dropped     atomic.Int64 // fields that were dropped
	dropRefused atomic.Int64 // fields that the API server requires, or that are immutable
	uncompared  atomic.Int64 // drops whose result was not compared with a new object

	foreign atomic.Int64 // fields of others that survived

	foreseen       atomic.Int64 // plans of one object
	foreseenFields atomic.Int64 // fields that they said would change, and that did
}

func (n *counts) String() string {
	return fmt.Sprintf(`%d manifests in two forms each, %d of them rewritten by the API server
%d fields to be changed by hand: %d refused by the API server, %d noticed without a write, %d repaired by one write (%d writes left a foreign item), %d could not be repaired
%d fields dropped, %d more refused by the API server, %d times not compared with a new object
%d foreign fields left alone
%d plans, in which %d fields were to change`,
		n.subjects.Load()/2, n.settled.Load(),
		n.fields.Load(), n.refused.Load(), n.noticed.Load(), n.repaired.Load(), n.leftovers.Load(), n.stuck.Load(),
		n.dropped.Load(), n.dropRefused.Load(), n.uncompared.Load(),
		n.foreign.Load(),
		n.foreseen.Load(), n.foreseenFields.Load())
}

// requireEnough requires that a run over all manifests has checked about as much as when this test was
// written.
func (n *counts) requireEnough(t *testing.T) {
	t.Helper()
	require.GreaterOrEqual(t, n.subjects.Load(), int64(2*95))
	require.GreaterOrEqual(t, n.repaired.Load(), int64(2100))
	require.GreaterOrEqual(t, n.noticed.Load(), int64(500))
	require.GreaterOrEqual(t, n.dropped.Load(), int64(1050))
	require.GreaterOrEqual(t, n.foreign.Load(), int64(600))
	require.GreaterOrEqual(t, n.foreseen.Load(), int64(700))
	require.GreaterOrEqual(t, n.foreseenFields.Load(), int64(250))
	require.Less(t, n.refused.Load(), n.repaired.Load(), "what the API server refuses proves nothing")
	require.Less(t, n.stuck.Load(), n.repaired.Load()/20)
}
