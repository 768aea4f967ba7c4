package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newTestCheckout returns a checkout whose control plane has one small program.
func newTestCheckout(t *testing.T) (*checkout, program) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "hack/k8s/go.mod"), "module example.com/small\n")
	write(t, filepath.Join(root, "hack/k8s/main.go"), "package main\n\nfunc main() {}\n")
	c, err := newCheckout(root)
	require.NoError(t, err)
	return c, program{"small", "example.com/small", "example.com/small"}
}

func TestUpToDate(t *testing.T) {
	c, small := newTestCheckout(t)
	upToDate := func() bool {
		done, err := c.upToDate(small)
		require.NoError(t, err)
		return done
	}
	assert.False(t, upToDate(), "before the first build")

	require.NoError(t, c.build(t.Context(), []program{small}))
	assert.True(t, upToDate(), "after the build")
	require.NoError(t, exec.Command(c.bin("small")).Run())

	write(t, filepath.Join(c.root, "hack/k8s/go.mod"), "module example.com/small // changed\n")
	assert.False(t, upToDate(), "after a change of go.mod")

	require.NoError(t, c.build(t.Context(), []program{small}))
	require.NoError(t, os.Remove(c.bin("small")))
	assert.False(t, upToDate(), "after somebody removed the program")
}

func TestAsset(t *testing.T) {
	c := &checkout{manifest: []byte("\tk8s.io/kubernetes v1.36.3\n")}
	folder := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	tests := map[string]struct {
		reason string
		script string
		fits   bool
	}{
		"SameVersion": {"it is the pinned version", "echo Kubernetes v1.36.3", true},
		"OtherPatch":  {"only the minor version must be the pinned one", "echo Kubernetes v1.36.10", true},
		"OtherMinor":  {"an older minor version behaves differently", "echo Kubernetes v1.35.3", false},
		"LongerMinor": {"the whole number is compared", "echo Kubernetes v1.360.3", false},
		"ExitCode":    {"the program does not run on this machine", "exit 1", false},
		"NoOutput":    {"the version is unknown", "true", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, "kube-apiserver")
			write(t, path, "#!/bin/sh\n"+tc.script+"\n")
			_, fits := c.asset(t.Context(), program{"kube-apiserver", kubernetesModule, ""})
			assert.Equal(t, tc.fits, fits, tc.reason)
		})
	}
}

func TestVersion(t *testing.T) {
	root, err := repositoryRoot()
	require.NoError(t, err)
	c, err := newCheckout(root)
	require.NoError(t, err)
	for _, module := range []string{kubernetesModule, etcdModule, kwokModule} {
		assert.Regexp(t, `^v\d+\.\d+\.\d+$`, c.version(module), module)
		assert.NotEqual(t, "v0.0.0", c.version(module), module)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
}
