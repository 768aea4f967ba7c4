package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newTestWorkshop is a repository whose control plane is one small program.
func newTestWorkshop(t *testing.T) (*workshop, program) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "hack/k8s/go.mod"), "module example.com/small\n")
	write(t, filepath.Join(root, "hack/k8s/main.go"), "package main\n\nfunc main() {}\n")
	w, err := newWorkshop(root)
	require.NoError(t, err)
	return w, program{"small", "example.com/small", "."}
}

func TestBuildsWhatIsMissingOrOutOfDate(t *testing.T) {
	w, small := newTestWorkshop(t)
	upToDate := func() bool {
		done, err := w.upToDate(small)
		require.NoError(t, err)
		return done
	}
	assert.False(t, upToDate(), "before the first build")

	require.NoError(t, w.build(t.Context(), []program{small}))
	assert.True(t, upToDate(), "after the build")
	require.NoError(t, exec.Command(w.bin("small")).Run())

	write(t, filepath.Join(w.root, "hack/k8s/go.mod"), "module example.com/small // changed\n")
	assert.False(t, upToDate(), "after a change of go.mod")

	require.NoError(t, w.build(t.Context(), []program{small}))
	require.NoError(t, os.Remove(w.bin("small")))
	assert.False(t, upToDate(), "after somebody removed the program")
}

func TestConcurrentBuildsWaitForEachOther(t *testing.T) {
	w, small := newTestWorkshop(t)
	results := make(chan error)
	for range 3 {
		go func() { results <- w.build(t.Context(), []program{small}) }()
	}
	for range 3 {
		assert.NoError(t, <-results)
	}
}

func TestFailedBuildSaysWhy(t *testing.T) {
	w, small := newTestWorkshop(t)
	write(t, filepath.Join(w.root, "hack/k8s/main.go"), "package main\n\nfunc main() { missing() }\n")
	err := w.build(t.Context(), []program{small})
	assert.ErrorContains(t, err, "build small for the control plane: exit status 1")
	assert.ErrorContains(t, err, "undefined: missing")

	t.Setenv("PATH", "")
	err = w.build(t.Context(), []program{small})
	assert.ErrorContains(t, err, "there is no go command in PATH; install Go")
}

func TestExplain(t *testing.T) {
	failed := errors.New("exit status 1")
	for output, want := range map[string]string{
		"# x\ncompile: writing output: write $WORK/b001/_pkg_.a: no space left on device\n": "the disk is full",
		"go: downloading a v1.0.0\na@v1.0.0: dial tcp: lookup proxy.example: no such host":  "a module could not be downloaded",
		"": "exit status 1",
	} {
		assert.ErrorContains(t, explain(failed, []byte(output)), want)
	}
}

func TestAssetsAreUsedWhereTheMinorVersionFits(t *testing.T) {
	w := &workshop{manifest: []byte("\tk8s.io/kubernetes v1.36.3\n")}
	folder := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	for name, test := range map[string]struct {
		script string
		fits   bool
	}{
		"same version":  {"echo Kubernetes v1.36.3", true},
		"newer patch":   {"echo Kubernetes v1.36.10", true},
		"older":         {"echo Kubernetes v1.35.3", false},
		"cannot run":    {"exit 1", false},
		"says nothing":  {"true", false},
		"looks similar": {"echo Kubernetes v1.360.3", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, "kube-apiserver")
			write(t, path, "#!/bin/sh\n"+test.script+"\n")
			_, fits := w.asset(t.Context(), program{"kube-apiserver", kubernetesModule, ""})
			assert.Equal(t, test.fits, fits)
		})
	}
}

func TestRootIsFoundFromNestedModules(t *testing.T) {
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

func TestPinnedVersions(t *testing.T) {
	root, err := repositoryRoot()
	require.NoError(t, err)
	w, err := newWorkshop(root)
	require.NoError(t, err)
	for _, module := range []string{kubernetesModule, etcdModule, kwokModule} {
		assert.Regexp(t, `^v\d+\.\d+\.\d+$`, w.version(module), module)
		assert.NotEqual(t, "v0.0.0", w.version(module), module)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
}
