package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlocks(t *testing.T) {
	t.Run("Everything", func(t *testing.T) {
		all, err := blocks(parsed(t, output()))
		require.NoError(t, err)
		tests := map[string]struct{ reason, block, contains string }{
			"Run":         {"what was measured, and how often", "run", "2026-11-22 with Go 1.26.0, kube-apiserver 1.36.3 and etcd 3.6.8, all on 2 cores of one machine (AMD EPYC)"},
			"SteadyState": {"median and range with the unit once", "steady", "| opblocks | 4 µs | 4 µs | 4 µs | 500 | 10 | 0 |"},
			"Convergence": {"median and range", "convergence", "| written by hand | 5.1 s (5–5.2) | 5.1 s (5–5.2) | 1.5 ms | 2 ms |"},
			"NotAll":      {"not all variants are measured with 10,000 objects", "convergence", "| apply in every pass | 5.1 s (5–5.2) |  |  | 2 ms |"},
			"Requests":    {"requests have no unit", "requests", "| 2 | 0 | 1.1 (1–1.2) | 1 | 0 |"},
			"Memory":      {"units of memory", "memory", "| opblocks | 80.1 MiB (80–80.2) | 8 KiB | 140 MiB | 280 MiB |"},
			"Compare":     {"by the name of the benchmark", "compare", "| `CoversDeployment` | 800 ns | 0 |"},
			"FirstPass":   {"of all objects, and of one", "firstpass", "| opblocks, ten children | 3.1 s (3–3.2) | 15.5 ms (15–16) |"},
			"Restart":     {"time and memory", "restart", "| written by hand | 20 s | 12 s | 7 KiB | 2,000 MiB |"},
			"Reached":     {"the ratio of runs of the same round", "goals", "| at most 1.00 | 1.00, 1.00 | reached |"},
			"Missed":      {"a value above its goal", "goals", "| at most 5 µs | 6 µs | **missed** |"},
		}
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				require.Contains(t, all[tc.block], tc.contains, tc.reason)
			})
		}
	})
	t.Run("SomethingMissing", func(t *testing.T) {
		_, err := blocks(parsed(t, strings.ReplaceAll(output(), "Convergence/objects=10000/variant=hand-written", "Other")))
		require.ErrorContains(t, err, "heap-MiB of hand-written with 10000 objects, Convergence")
	})
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.4256: "0.426", 9.96: "9.96", 99.96: "100", 123.4: "123", 1234.5: "1,235"} {
		require.Equal(t, want, number(v))
	}
}
