package owned

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWithDataOfAnUnstructuredSecret(t *testing.T) {
	secret := func(fields map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: fields}
		u.SetAPIVersion("v1")
		u.SetKind("Secret")
		return u
	}
	given := secret(map[string]any{
		"stringData": map[string]any{"a": "text", "b": "wins"},
		"data":       map[string]any{"b": "b2xk", "c": "c3RheXM="},
	})
	before := given.DeepCopy()
	want := secret(map[string]any{"data": map[string]any{"a": "dGV4dA==", "b": "d2lucw==", "c": "c3RheXM="}})
	require.Equal(t, want, WithData(given))
	require.Equal(t, before, given, "the caller's object is not modified")
}
