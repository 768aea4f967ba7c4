package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Run("Rounds", func(t *testing.T) {
		r := parsed(t, output())
		require.Equal(t, samples{5, 5.1, 5.2}, r.of("Convergence", 1_000, opblocks, "s"), "the values of all rounds, in order")
		require.Nil(t, r.of("Convergence", 5, opblocks, "s"), "not measured")
		require.Equal(t, "AMD EPYC", r.config["cpu"])
		require.Equal(t, "2", r.config["processors"])
	})
	t.Run("Count", func(t *testing.T) {
		r := parsed(t, "pkg: a/b\nBenchmarkX-2 1 5 ns/op\nBenchmarkX-2 1 7 ns/op\n")
		require.Len(t, r.benchmarks, 1, "go test -count prints equal lines")
		require.Equal(t, samples{5, 7}, r.benchmarks[0].values["ns/op"])
	})
	t.Run("ValueIsNoNumber", func(t *testing.T) {
		_, err := parse(strings.NewReader("BenchmarkX-2 1 much s\n"))
		require.ErrorContains(t, err, "BenchmarkX-2 1 much s", "the error shows the line")
	})
}
