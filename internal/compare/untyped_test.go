package compare

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Nulls are not sent, so they are no difference, not even inside an atomic value.
func TestUntypedIgnoresNulls(t *testing.T) {
	u, err := CompileUntyped(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, BuiltIn)
	require.NoError(t, err)
	object := func(item map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"list": []any{item}}}}
	}
	require.Empty(t, u.Differences(object(map[string]any{"a": nil, "b": "x"}), object(map[string]any{"b": "x"})))
}
