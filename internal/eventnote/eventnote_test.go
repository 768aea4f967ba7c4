package eventnote

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestCut(t *testing.T) {
	require.Equal(t, "short", Cut("short"))
	for _, note := range []string{strings.Repeat("a", 5000), strings.Repeat("é", 600), "x" + strings.Repeat("é", 600), "\xff"} {
		got := Cut(note)
		require.LessOrEqual(t, len(got), limit)
		require.True(t, utf8.ValidString(got), "cut between characters")
	}
}
