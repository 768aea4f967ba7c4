package builtin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestPullPolicy has images and their policies: the policy depends on the tag.
func TestPullPolicy(t *testing.T) {
	tests := map[string]corev1.PullPolicy{
		"nginx": corev1.PullAlways, "nginx:latest": corev1.PullAlways, "registry.example:5000/a/b": corev1.PullAlways,
		"nginx:1": corev1.PullIfNotPresent, "registry.example:5000/a/b:1": corev1.PullIfNotPresent, "nginx@sha256:" + strings.Repeat("0123456789abcdef", 4): corev1.PullIfNotPresent,
		"": corev1.PullIfNotPresent, "Not An Image": corev1.PullIfNotPresent,
	}
	for image, want := range tests {
		require.Equal(t, want, pullPolicy(image), image)
	}
}
