package programs

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRepositoryRoot(t *testing.T) {
	root, err := repositoryRoot()
	require.NoError(t, err)
	t.Chdir(filepath.Join(root, "hack", "k8s"))
	fromBelow, err := repositoryRoot()
	require.NoError(t, err)
	assert.Equal(t, root, fromBelow)

	t.Chdir(t.TempDir())
	_, err = repositoryRoot()
	assert.ErrorContains(t, err, "is not inside a checkout of github.com/opblocks/opblocks; run from within one")
}
