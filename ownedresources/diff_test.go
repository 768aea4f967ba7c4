package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/preview"
)

// diff returns what would change.
func (env *serverEnv) diff(t *testing.T, want client.Object) preview.Change {
	t.Helper()
	changes, err := Diff(t.Context(), env.Client, env.Owner, want)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	return changes[0]
}
