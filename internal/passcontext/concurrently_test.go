package passcontext_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/passcontext"
)

func TestConcurrently(t *testing.T) {
	tests := map[string]struct {
		reason string
		n      int
	}{
		"None": {"There is nothing to do.", 0},
		"One":  {"It needs no goroutine.", 1},
		"Many": {"Each call waits for all others.", 16},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // if a call waits for ever, the test fails
				var all sync.WaitGroup
				all.Add(tc.n)
				done := make([]bool, tc.n)
				passcontext.Concurrently(t.Context(), tc.n, func(i int) {
					all.Done()
					all.Wait()
					done[i] = true
				})
				require.NotContains(t, done, false, tc.reason)
			})
		})
	}
}

func TestConcurrentlyPanics(t *testing.T) {
	defer func() {
		text, _ := recover().(string)
		require.Contains(t, text, "broken\n")
		require.Contains(t, text, "concurrently_test.go", "it has the stack of the call")
	}()
	passcontext.Concurrently(t.Context(), 3, func(i int) {
		if i == 1 {
			panic("broken")
		}
	})
}

// TestConcurrentlyNested calls Concurrently within Concurrently, with more calls than the limit of goroutines. All calls have to return:
// none may wait until another goroutine ends.
func TestConcurrentlyNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int32
		passcontext.Concurrently(t.Context(), 40, func(int) {
			passcontext.Concurrently(t.Context(), 3, func(int) { done.Add(1) })
		})
		require.EqualValues(t, 120, done.Load())
	})
}

func TestWithConcurrency(t *testing.T) {
	var order []int
	ctx := passcontext.WithConcurrency(context.Background(), func(n int, do func(int)) {
		for i := range n {
			do(n - 1 - i)
		}
	})
	passcontext.Concurrently(ctx, 3, func(i int) { order = append(order, i) })
	require.Equal(t, []int{2, 1, 0}, order)
}
