package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPictures(t *testing.T) {
	all := pictures(parsed(t, output()))
	steady, convergence := all["figures.svg"], all["figures-convergence.svg"]
	tests := map[string]struct {
		reason string
		panel  panel
		bars   int
		first  bar
	}{
		"SteadyState": {
			"three variants at three sizes, in microseconds", steady[0], 9,
			bar{opblocks, "100 objects, opblocks", samples{4000, 4001, 4002}.times(1e-3), "µs"},
		},
		"OtherWays": {
			"the other three, in milliseconds", steady[1], 9,
			bar{createOrPatch, "100 objects, CreateOrPatch, careful", samples{7000, 7001, 7002}.times(1e-6), "ms"},
		},
		"Pods": {
			"the two that list pods", steady[2], 6,
			bar{opblocksPods, "100 objects, opblocks", samples{10000, 10001, 10002}.times(1e-3), "µs"},
		},
		"Convergence": {
			"all variants at both sizes", convergence[0], 14,
			bar{opblocks, "1,000 objects, opblocks", samples{5, 5.1, 5.2}, "s"},
		},
		"Memory": {
			"from the same benchmark", convergence[1], 6,
			bar{opblocks, "1,000 objects, opblocks", samples{80, 80.1, 80.2}, "MiB"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Len(t, tc.panel.bars, tc.bars, tc.reason)
			require.Equal(t, tc.first, tc.panel.bars[0], tc.reason)
			require.Equal(t, 3, tc.panel.runs())
		})
	}
}
