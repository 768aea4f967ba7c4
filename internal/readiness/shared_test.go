package readiness

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestComputeChangesNothing checks that Compute only reads the object, which may be in the memory of a cache.
func TestComputeChangesNothing(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	before := obj.DeepCopy()
	_, err := Compute(obj, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"})
	require.NoError(t, err)
	require.Equal(t, before, obj)
}
