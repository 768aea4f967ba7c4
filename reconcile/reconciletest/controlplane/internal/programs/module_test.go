package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newTestModule returns a module with one small program, and sets a new cache.
func newTestModule(t *testing.T) *Module {
	t.Helper()
	t.Setenv(CacheVariable, t.TempDir())
	return &Module{
		Name: "small",
		Files: map[string][]byte{
			"go.mod":  []byte("module example.com/small\n\ngo 1.26.0\n"),
			"main.go": []byte("package main\n\nfunc main() {}\n"),
		},
		Programs: []Program{{"small", "example.com/small"}},
	}
}

func TestUpToDate(t *testing.T) {
	m := newTestModule(t)
	upToDate := func() bool {
		folder, err := m.folder()
		require.NoError(t, err)
		return len(m.missing(folder, []string{"small"})) == 0
	}
	assert.False(t, upToDate(), "before the first build")

	paths, err := m.Ensure(t.Context(), "small")
	require.NoError(t, err)
	assert.True(t, upToDate(), "after the build")
	require.NoError(t, exec.Command(paths["small"]).Run())

	t.Setenv("PATH", "")
	again, err := m.Ensure(t.Context(), "small")
	require.NoError(t, err, "a program that is there needs no Go")
	assert.Equal(t, paths, again)

	m.Files["go.mod"] = append(m.Files["go.mod"], "// changed\n"...)
	assert.False(t, upToDate(), "after a change of go.mod")
}

func TestRemovedProgram(t *testing.T) {
	m := newTestModule(t)
	paths, err := m.Ensure(t.Context(), "small")
	require.NoError(t, err)
	require.NoError(t, os.Remove(paths["small"]))
	_, err = m.Ensure(t.Context(), "small")
	require.NoError(t, err, "after somebody removed the program")
	assert.FileExists(t, paths["small"])
}

func TestCacheFolder(t *testing.T) {
	t.Setenv(CacheVariable, "")
	t.Setenv("HOME", "/home/user")
	t.Setenv("XDG_CACHE_HOME", "")
	folder, err := cacheFolder()
	require.NoError(t, err)
	assert.Regexp(t, "^/home/user/.*/opblocks/controlplane$", folder)

	t.Setenv("HOME", "")
	_, err = cacheFolder()
	assert.ErrorContains(t, err, "there is no folder for the control plane's programs: set OPBLOCKS_CACHE to one")

	t.Setenv(CacheVariable, "/var/cache/opblocks")
	folder, err = cacheFolder()
	require.NoError(t, err)
	assert.Equal(t, "/var/cache/opblocks/controlplane", folder)
}

func TestExecutable(t *testing.T) {
	tests := map[string]struct{ reason, source, want string }{
		"Command":      {"it is the last element of the path", "k8s.io/kubernetes/cmd/kubectl", "kubectl"},
		"MajorVersion": {"the go command skips a version", "go.etcd.io/etcd/server/v3", "server"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, Program{Package: tc.source}.executable(), tc.reason)
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
}
