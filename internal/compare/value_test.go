package compare

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
)

// encoding/json has rules of its own for structs whose fields it reads.
func TestAppendValueEqualsEncodingJSON(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	tests := map[string]any{
		"NumberAsString": struct {
			N int `json:"n,string"`
		}{5},
		"EmbeddedPointer":    struct{ *inner }{&inner{"x"}},
		"NilEmbeddedPointer": struct{ *inner }{},
	}
	for name, v := range tests {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(v)
			require.NoError(t, err)
			got, err := AppendValue(nil, v)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got))
		})
	}
}

// The values may be in the memory of an informer's cache, which others read at the same time.
func TestEqualDoesNotChangeItsArguments(t *testing.T) {
	huge := resource.MustParse("100000000000000000000000000000000")
	one := resource.MustParse("1")
	before := one.DeepCopy()
	require.False(t, Equal(&one, &huge))
	require.Equal(t, before, one, "also if one of the numbers does not fit into an int64, and the other is converted")
}
