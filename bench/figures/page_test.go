package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFill(t *testing.T) {
	const page = "before\n<!-- figures: a -->\nold\n<!-- end of figures -->\nafter\n"
	t.Run("Block", func(t *testing.T) {
		filled, err := fill(page, map[string]string{"a": "new\n"})
		require.NoError(t, err)
		require.Equal(t, strings.Replace(page, "old", "new", 1), filled, "the text around the block stays")
	})
	t.Run("MarkWithoutBlock", func(t *testing.T) {
		_, err := fill(page, nil)
		require.ErrorContains(t, err, `mark "a"`)
	})
	t.Run("BlockWithoutMark", func(t *testing.T) {
		_, err := fill(page, map[string]string{"a": "", "b": ""})
		require.ErrorContains(t, err, "figures: b")
	})
}

// TestRun fills the text of the page, in a folder of its own.
func TestRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "figures.md")
	t.Run("MissingResults", func(t *testing.T) {
		require.ErrorContains(t, run(strings.NewReader("PASS\n"), "page.tmpl", page), "no results of")
		require.NoFileExists(t, page)
	})
	t.Run("AllResults", func(t *testing.T) {
		require.NoError(t, run(strings.NewReader(output()), "page.tmpl", page))
		after, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Contains(t, string(after), "Measured on 2026-11-22")
		for name := range pictures(&results{}) {
			require.FileExists(t, filepath.Join(filepath.Dir(page), name))
			require.Contains(t, string(after), "("+name+")", "the page shows the picture")
		}
	})
}
