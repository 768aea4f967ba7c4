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

func TestExecutable(t *testing.T) {
	tests := map[string]struct{ reason, source, want string }{
		"Command":      {"it is the last element of the path", "k8s.io/kubernetes/cmd/kubectl", "kubectl"},
		"MajorVersion": {"the go command skips a version", "go.etcd.io/etcd/server/v3", "server"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, program{source: tc.source}.executable(), tc.reason)
		})
	}
}
