package ownedresources

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// counts counts what was proved, so that a test which proves nothing fails.
type counts struct {
	subjects atomic.Int64 // manifests, each in two forms
	settled  atomic.Int64 // whose live object differs from what was sent

	fields    atomic.Int64 // of ours, values and what is around them, that were to be changed by hand
	refused   atomic.Int64 // by the API server, whatever the value
	noticed   atomic.Int64 // as a dry run
	repaired  atomic.Int64
	stuck     atomic.Int64 // could not be repaired, see sticky
	leftovers atomic.Int64 // repairs that left a foreign item behind

	dropped     atomic.Int64 // fields that were not wanted any more
	dropRefused atomic.Int64 // by the API server: required or immutable
	uncompared  atomic.Int64 // with a new object

	foreign atomic.Int64 // fields left alone
}

func (n *counts) String() string {
	return fmt.Sprintf(`%d manifests in two forms each, %d of them rewritten by the API server
%d fields to be changed by hand: %d refused by the API server, %d noticed as a dry run, %d repaired by one write (%d writes left a foreign item), %d could not be repaired
%d fields dropped, %d more refused by the API server, %d times not compared with a new object
%d foreign fields left alone`,
		n.subjects.Load()/2, n.settled.Load(),
		n.fields.Load(), n.refused.Load(), n.noticed.Load(), n.repaired.Load(), n.leftovers.Load(), n.stuck.Load(),
		n.dropped.Load(), n.dropRefused.Load(), n.uncompared.Load(),
		n.foreign.Load())
}

func (n *counts) requireEnough(t *testing.T) {
	t.Helper()
	require.GreaterOrEqual(t, n.subjects.Load(), int64(2*60))
	require.GreaterOrEqual(t, n.repaired.Load(), int64(2100))
	require.GreaterOrEqual(t, n.noticed.Load(), int64(1300))
	require.GreaterOrEqual(t, n.dropped.Load(), int64(1150))
	require.GreaterOrEqual(t, n.foreign.Load(), int64(400))
	require.Less(t, n.refused.Load(), n.fields.Load()/2, "what the API server refuses proves nothing")
	require.Less(t, n.stuck.Load(), n.repaired.Load()/20)
}
