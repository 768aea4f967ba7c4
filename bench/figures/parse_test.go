package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Run("ValueIsNoNumber", func(t *testing.T) {
		_, err := parse(strings.NewReader("BenchmarkX-2 1 much s\n"))
		require.ErrorContains(t, err, "BenchmarkX-2 1 much s", "the error shows the line")
	})
}
