package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	tests := map[string]struct {
		reason string
		of     samples
		want   float64
	}{
		"None":   {"nothing was measured", nil, 0},
		"Odd":    {"the middle one, whatever the order", samples{9, 1, 4}, 4},
		"Even":   {"between the two in the middle", samples{1, 2, 4, 9}, 3},
		"Single": {"one run", samples{7}, 7},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.of.median(), tc.reason)
		})
	}
}

func TestOver(t *testing.T) {
	require.Equal(t, samples{0.5, 2}, samples{1, 4}.over(samples{2, 2, 8}), "run by run")
}
