package simulation

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConcurrency(t *testing.T) {
	tests := map[string]struct {
		reason     string
		processors int
		limit      int64
		want       int
	}{
		"Unlimited":      {reason: "a run uses one processor", processors: 8, limit: math.MaxInt64, want: 8},
		"EnoughMemory":   {reason: "a limit with room for all changes nothing", processors: 8, limit: 1 << 30, want: 8},
		"LittleMemory":   {reason: "there is room for four runs of 32 MiB", processors: 8, limit: 128 << 20, want: 4},
		"TooLittle":      {reason: "one run always happens", processors: 8, limit: 1 << 20, want: 1},
		"NothingAllowed": {reason: "a limit of 0 is allowed by the runtime", processors: 8, limit: 0, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, concurrency(tc.processors, tc.limit), tc.reason)
		})
	}
}
