package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// maxAllocations is the number of allocations in a pass with nothing to do. Without the race detector there are 10; with it
// objects that are kept for the next pass are dropped at random.
const maxAllocations = 15

// TestAllocationBudget checks what a pass with nothing to do costs: no request, and few allocations.
func TestAllocationBudget(t *testing.T) {
	f := newFleet(t, 20)
	for i := range 3 * len(f.names) { // which notes that there is nothing to do
		f.pass(t, f.ours, i)
	}
	f.count.Sent()
	i := 0
	allocations := testing.AllocsPerRun(1_000, func() {
		f.pass(t, f.ours, i)
		i++
	})
	require.Empty(t, f.count.Sent())
	require.LessOrEqual(t, int(allocations), maxAllocations)
}
