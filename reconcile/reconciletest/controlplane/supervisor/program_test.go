//go:build unix

package supervisor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// TestNew builds the program from the files that are embedded, in the user's cache.
func TestNew(t *testing.T) {
	require.NoError(t, supervisor.Build(t.Context()))
	s, err := supervisor.New(t.Context())
	require.NoError(t, err)
	p, err := s.Start(shell("server", "exec sleep 1000", 0))
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	assertGone(t, s.PID(), p.PID())
	assertRemoved(t, s.Folder())
}
