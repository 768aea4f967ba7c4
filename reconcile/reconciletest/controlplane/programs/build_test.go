package programs

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBuildConcurrently(t *testing.T) {
	c, small := newTestCheckout(t)
	results := make(chan error)
	for range 3 {
		go func() { results <- c.build(t.Context(), []program{small}) }()
	}
	for range 3 {
		assert.NoError(t, <-results)
	}
}

func TestBuildFails(t *testing.T) {
	c, small := newTestCheckout(t)
	write(t, filepath.Join(c.root, "hack/k8s/main.go"), "package main\n\nfunc main() { missing() }\n")
	err := c.build(t.Context(), []program{small})
	assert.ErrorContains(t, err, "build small for the control plane: exit status 1")
	assert.ErrorContains(t, err, "undefined: missing")

	t.Setenv("PATH", "")
	err = c.build(t.Context(), []program{small})
	assert.ErrorContains(t, err, "there is no go command in PATH; install Go")
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
