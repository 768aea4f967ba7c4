package preview

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckAction(t *testing.T) {
	for action := range verbs {
		require.NoError(t, action.Check(), action)
	}
	require.NoError(t, None.Check())
	require.NoError(t, Compare.Check())
	require.EqualError(t, Action("creat").Check(),
		`the action "creat" of a change is not known: use none, create, apply, recreate, replace, delete, retain or compare`)
	require.Error(t, Action("").Check(), "a change says what would be done, or why nothing is")
}
