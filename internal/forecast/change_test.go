package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckAction(t *testing.T) {
	for action := range verbs {
		require.NoError(t, Check(action), action)
	}
	require.NoError(t, Check(None))
	require.NoError(t, Check(Compare))
	require.EqualError(t, Check("creat"),
		`the action "creat" of a change is not known: use none, create, apply, recreate, replace, delete, retain or compare`)
	require.Error(t, Check(""), "a change says what would be done, or why nothing is")
}
