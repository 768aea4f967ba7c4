package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPanels(t *testing.T) {
	all := panels(parsed(t))
	tests := map[string]struct {
		reason string
		panel  panel
		want   []bar
	}{
		"SteadyState": {
			reason: "the side-by-side times, in microseconds; sizes that were not measured are left out",
			panel:  all[0],
			want:   []bar{{"opblocks", "100 objects, opblocks", 12.5, "µs"}, {"hand-written", "100 objects, hand-written", 10, "µs"}},
		},
		"Convergence": {
			reason: "variants that were not measured are left out",
			panel:  all[1],
			want:   []bar{{"opblocks", "1000 objects, opblocks", 15.44, "s"}},
		},
		"Memory": {
			reason: "from the same benchmark",
			panel:  all[2],
			want:   []bar{{"opblocks", "1000 objects, opblocks", 7.7, "KiB"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.panel.bars, tc.reason)
		})
	}
}
