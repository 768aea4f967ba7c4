package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile/internal/turns"
)

func TestYield(t *testing.T) {
	tests := map[string]struct {
		reason   string
		calls    int
		length   time.Duration
		perCall  time.Duration
		work     int
		wantDone []int // the work that is done after each pass
	}{
		"calls":           {"A pass makes three calls.", 3, time.Hour, 0, 7, []int{3, 6, 7}},
		"just enough":     {"Nothing is left for another pass.", 3, time.Hour, 0, 3, []int{3}},
		"time":            {"After two calls the time has passed.", 100, 2 * time.Second, time.Second, 5, []int{2, 4, 5}},
		"one slow call":   {"Each pass gets on.", 100, time.Second, time.Minute, 3, []int{1, 2, 3}},
		"one call a pass": {"It is the smallest bound.", 1, time.Hour, 0, 2, []int{1, 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			done := 0
			var h *harness
			h = newHarness(t, interceptor.Funcs{}, Named("work", Func(func(ctx context.Context, _ client.Client, _ *budget) error {
				for done < tc.work {
					if err := Yield(ctx); err != nil {
						return err
					}
					h.clock.SetTime(h.clock.Now().Add(tc.perCall))
					done++
				}
				return nil
			})))
			h.WithTurns(tc.calls, tc.length)
			for i, want := range tc.wantDone {
				result, err := h.Reconcile(t.Context(), request)
				require.NoError(t, err)
				require.Equal(t, want, done, tc.reason)
				if i == len(tc.wantDone)-1 {
					require.Zero(t, result.RequeueAfter)
					continue
				}
				require.Equal(t, turns.After, result.RequeueAfter)
				require.Equal(t, 1, h.writes, "the condition stays the same while the work goes on")
			}
		})
	}
}

// Each step of a pass can make at least one call. So a step whose work never ends does not stop the other steps of the same
// object.
func TestYieldInTwoSteps(t *testing.T) {
	done := map[string]int{}
	step := func(name string) NamedStep[*budget] {
		return Named(name, Func(func(ctx context.Context, _ client.Client, _ *budget) error {
			for {
				if err := Yield(ctx); err != nil {
					return err
				}
				done[name]++
			}
		}))
	}
	h := newHarness(t, interceptor.Funcs{}, step("first"), step("second"))
	h.WithTurns(10, time.Hour)
	_, err := h.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"first": 10, "second": 1}, done)
	live := newBudget()
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, live))
	ready, _ := conditions.Get(live.Status.Conditions, conditions.Ready)
	require.Equal(t, Yielded, ready.Reason)
	require.Contains(t, ready.Message, turns.Over.Error())
}

func TestYieldOutsideOfAPass(t *testing.T) {
	for range 2 * turns.Default.Calls {
		require.NoError(t, Yield(t.Context()))
	}
}

func TestTurnsThatAreNone(t *testing.T) {
	tests := map[string]struct {
		reason string
		calls  int
		length time.Duration
		want   string
	}{
		"no calls":       {"No pass could do anything.", 0, time.Second, "the number of calls is 0: set it to 1 or more, such as 100"},
		"negative calls": {"As above.", -1, time.Second, "the number of calls is -1"},
		"no time":        {"No pass could do anything.", 1, 0, "the time is 0s: set it to 1ms or more, such as 1s"},
		"negative time":  {"As above.", 1, -time.Second, "the time is -1s"},
		"without a unit": {"It is a number without its unit.", 1, 30, "the time is 30ns"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, Named("work", Func(func(context.Context, client.Client, *budget) error { return nil })))
			_, err := h.WithTurns(tc.calls, tc.length).Reconcile(t.Context(), request)
			require.ErrorContains(t, err, "WithTurns: "+tc.want, tc.reason)
		})
	}
}
