//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestIgnored checks how the patterns of a .dockerignore file are read.
func TestIgnored(t *testing.T) {
	ignored := readIgnored(t, "../memcached/Dockerfile.dockerignore")
	for path, want := range map[string]bool{
		"go.mod": false, "examples/go.sum": false, "doc.go": false, "examples/memcached/main.go": false,
		"README.md": true, "bench/go.mod": true, "docs/page.md": true, "bin/k8s/etcd": true, "bin/left.go": true, ".git": true,
	} {
		assert.Equal(t, want, ignored(path), path)
	}
}
