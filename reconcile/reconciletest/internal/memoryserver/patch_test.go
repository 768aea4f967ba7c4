package memoryserver

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestMergeFieldsAsTheAPIServer merges random patches. The results must be the same as with the library that the API server uses.
func TestMergeFieldsAsTheAPIServer(t *testing.T) {
	changed := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		before, patch := encodedFields(t, randomFields(r, 4)), encodedFields(t, randomFields(r, 4))
		after, err := jsonpatch.MergePatch(before, patch)
		require.NoError(t, err)
		want, got, changes := decodedFields(t, after), decodedFields(t, before), decodedFields(t, patch)
		mergeFields(got, changes)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s merged into %s (-library +got):\n%s", seed, patch, before, diff)
		}
		if string(after) != string(before) {
			changed++
		}
	}
	require.Greater(t, changed, 1000)
}

// randomFields returns a map with few different keys, so that patches often change existing fields.
func randomFields(r *rand.Rand, depth int) map[string]any {
	fields := map[string]any{}
	for range r.IntN(4) {
		fields[string(rune('a'+r.IntN(4)))] = randomValue(r, depth-1)
	}
	return fields
}

func randomValue(r *rand.Rand, depth int) any {
	kinds := 6
	if depth <= 0 {
		kinds = 4
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return int64(r.IntN(3))
	case 2:
		return "text"
	case 3:
		return r.IntN(2) == 0
	case 4:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
	return randomFields(r, depth)
}

func encodedFields(t *testing.T, fields map[string]any) []byte {
	t.Helper()
	content, err := utiljson.Marshal(fields)
	require.NoError(t, err)
	return content
}

func decodedFields(t *testing.T, content []byte) map[string]any {
	t.Helper()
	fields := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(content, &fields))
	return fields
}
