package corpus

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// counts counts the checks, so that a test that checks nothing fails.
type counts struct {
	subjects atomic.Int64 // the manifests of the corpus, each as a Go struct and as an unstructured object
	settled  atomic.Int64 // objects that the API server stores with other values than were sent

	fields    atomic.Int64 // values, structs, lists and maps of ours that were to be changed as another writer
	refused   atomic.Int64 // fields for which the API server refused every other value
	noticed   atomic.Int64 // changes that the comparison noticed in a dry run
	repaired  atomic.Int64
	stuck     atomic.Int64 // changes that no apply could repair, see unrepairable
	leftovers atomic.Int64 // repairs after which an item of another writer is left

	dropped     atomic.Int64 // fields that were dropped
	dropRefused atomic.Int64 // drops that the API server refused, because the field is required or immutable
	uncompared  atomic.Int64 // drops after which the object was not compared with a newly created one

	foreign atomic.Int64 // fields of other writers that survived our writes

	foreseen       atomic.Int64 // previews of one object
	foreseenFields atomic.Int64 // fields that a preview said would change, and that did
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

// requireEnough requires that a run over all manifests has checked about as much as it did when this test was written.
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
