package setfinalizer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Objects in clusters have these names.
func TestNames(t *testing.T) {
	require.Equal(t, "children.opblocks.dev/storage", For("storage"))
	require.Equal(t, "children.opblocks.dev/set", For(""))
	set, ok := SetOf(For("storage"))
	require.True(t, ok)
	require.Equal(t, "storage", set)
	_, ok = SetOf("example.com/storage")
	require.False(t, ok)
}
