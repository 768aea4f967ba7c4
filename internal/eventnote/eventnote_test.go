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

func TestCamelCase(t *testing.T) {
	for name, want := range map[string]string{
		"workload": "Workload", "my-step": "MyStep", "two words": "TwoWords", "v2": "V2", "öl": "Öl", "…": "Reconcile", "KeepsCase": "KeepsCase",
	} {
		require.Equal(t, want, CamelCase(name))
	}
}
