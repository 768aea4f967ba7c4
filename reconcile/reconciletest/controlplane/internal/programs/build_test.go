package programs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuildConcurrently(t *testing.T) {
	m := newTestModule(t)
	results := make(chan error)
	for range 3 {
		go func() {
			_, err := m.Ensure(t.Context(), "small")
			results <- err
		}()
	}
	for range 3 {
		assert.NoError(t, <-results)
	}
}

func TestBuildFails(t *testing.T) {
	m := newTestModule(t)
	m.Files["main.go"] = []byte("package main\n\nfunc main() { missing() }\n")
	_, err := m.Ensure(t.Context(), "small")
	assert.ErrorContains(t, err, "build small for the control plane: exit status 1")
	assert.ErrorContains(t, err, "undefined: missing")
	assertNothingBuilt(t)

	t.Setenv("PATH", "")
	_, err = m.Ensure(t.Context(), "small")
	assert.ErrorContains(t, err, "there is no go command in PATH; install Go")
	assertNothingBuilt(t)
}

func TestBuildIgnoresEnvironment(t *testing.T) {
	m := newTestModule(t)
	t.Setenv("GOFLAGS", "-mod=vendor -race")
	t.Setenv("GOOS", "windows")
	t.Setenv("GOWORK", filepath.Join(t.TempDir(), "missing.work"))
	_, err := m.Ensure(t.Context(), "small")
	assert.NoError(t, err)
}

func TestBuildWithOldGo(t *testing.T) {
	m := newTestModule(t)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "go"),
		"#!/bin/sh\necho 'go: go.mod requires go >= 1.26.0 (running go 1.21.0; GOTOOLCHAIN=local)' >&2\nexit 1\n")
	t.Setenv("PATH", folder)
	_, err := m.Ensure(t.Context(), "small")
	assert.EqualError(t, err, "build small for the control plane: the go command in PATH is too old; install Go 1.26.0 or newer: "+
		"go: go.mod requires go >= 1.26.0 (running go 1.21.0; GOTOOLCHAIN=local)")
	assertNothingBuilt(t)
}

func TestBuildOffline(t *testing.T) {
	m := newTestModule(t)
	m.Files["go.mod"] = []byte("module example.com/small\n\ngo 1.26.0\n\nrequire example.com/missing v1.0.0\n")
	m.Files["go.sum"] = []byte("example.com/missing v1.0.0 h1:NGMr/IAAtCUEJUqbPMRpSKCuWPyZzU6Y8bM/JQvM0ks=\n" +
		"example.com/missing v1.0.0/go.mod h1:NGMr/IAAtCUEJUqbPMRpSKCuWPyZzU6Y8bM/JQvM0ks=\n")
	m.Files["main.go"] = []byte("package main\n\nimport _ \"example.com/missing\"\n\nfunc main() {}\n")
	t.Setenv("GOPROXY", "off")
	_, err := m.Ensure(t.Context(), "small")
	assert.ErrorContains(t, err, "build small for the control plane: a module could not be downloaded; check the network")
	assertNothingBuilt(t)
}

func TestUnwritableCache(t *testing.T) {
	m := newTestModule(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	t.Setenv(CacheVariable, filepath.Join(file, "cache"))
	_, err := m.Ensure(t.Context(), "small")
	assert.ErrorContains(t, err, "the control plane's programs cannot be stored: set OPBLOCKS_CACHE to a folder that you may write to")
}

func TestUnfinishedBuildIsRemoved(t *testing.T) {
	m := newTestModule(t)
	write(t, filepath.Join(os.Getenv(CacheVariable), "controlplane", ".new-killed", "bin", "small"), "half")
	paths, err := m.Ensure(t.Context(), "small")
	require.NoError(t, err)
	folders, err := os.ReadDir(filepath.Dir(filepath.Dir(paths["small"])))
	require.NoError(t, err)
	assert.Len(t, folders, 2, "the lock and the folder of the program")
}

func TestExplain(t *testing.T) {
	tests := map[string]struct{ reason, output, want string }{
		"DiskFull": {
			reason: "the build needs much space",
			output: "# x\ncompile: writing output: write $WORK/b001/_pkg_.a: no space left on device\n",
			want:   "the disk is full",
		},
		"Download": {
			reason: "the network or the proxy fails",
			output: "go: downloading a v1.0.0\na@v1.0.0: dial tcp: lookup proxy.example: no such host",
			want:   "a module could not be downloaded",
		},
		"Toolchain": {
			reason: "the go command needs a newer one, which it may not download",
			output: "go: download go1.26.0 for linux/amd64: toolchain not available",
			want:   "the go command in PATH is too old",
		},
		"ToolchainOfARelease": {
			reason: "the release that was named needs a newer Go than this module",
			output: "go: k8s.io/kubernetes@v1.98.0 requires go >= 1.99.0 (running go 1.26.8; GOTOOLCHAIN=local)",
			want:   "the go command in PATH is too old; install Go 1.99.0 or newer: ",
		},
		"Version": {
			reason: "a release was named that does not exist",
			output: "k8s.io/kubernetes@v1.34.99: reading https://proxy.example/k8s.io/kubernetes/@v/v1.34.99.info: 404 Not Found\n\tserver response: not found",
			want:   "a module is not available in this version",
		},
		"NoOutput": {
			reason: "without output there is only the error of the command",
			output: "",
			want:   "exit status 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, explain(errors.New("exit status 1"), []byte(tc.output)), tc.want, tc.reason)
		})
	}
}

func TestUnwritable(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"DiskFull":   {"a folder may be made on a full disk", &fs.PathError{Op: "mkdir", Path: "/c", Err: syscall.ENOSPC}, "the disk is full"},
		"ReadOnly":   {"the home folder of a container may be read-only", &fs.PathError{Op: "mkdir", Path: "/c", Err: syscall.EROFS}, "set OPBLOCKS_CACHE"},
		"Permission": {"the folder may belong to another user", &fs.PathError{Op: "mkdir", Path: "/c", Err: syscall.EACCES}, "mkdir /c: permission denied"},
		"Other":      {"any other error is returned as it is", errors.New("interrupted"), "interrupted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, unwritable(tc.err), tc.want, tc.reason)
		})
	}
}

// assertNothingBuilt asserts that the cache contains only the lock.
func assertNothingBuilt(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(os.Getenv(CacheVariable), "controlplane"))
	require.NoError(t, err)
	for _, file := range files {
		assert.Equal(t, ".lock", file.Name())
	}
}
