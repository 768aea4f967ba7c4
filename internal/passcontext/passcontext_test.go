package passcontext

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadRandom(t *testing.T) {
	one, other := make([]byte, 16), make([]byte, 16)
	ReadRandom(t.Context(), one)
	ReadRandom(t.Context(), other)
	require.NotEqual(t, one, other, "outside of explorations nothing is repeated")
	ctx := WithRandom(t.Context(), func(into []byte) { copy(into, "given") })
	ReadRandom(ctx, one[:5])
	require.Equal(t, "given", string(one[:5]))
}
