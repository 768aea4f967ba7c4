//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// refused is the scenario of an operator that writes a ConfigMap with the Shop's motto. write gets the number of errors that the process has
// seen. The Shop is created and changed twice, and the only faults are internal errors.
func refused(write func(ctx context.Context, c client.Client, s *Shop, errors int) error) reconciletest.Scenario {
	s := of(func(*reconciletest.Process) shopFunc {
		errors := 0
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := write(ctx, c, s, errors)
			if err != nil {
				errors++
			}
			return ctrl.Result{}, err
		}
	}, painted("red", "blue", "green")...)
	for _, kind := range reconciletest.AllFaults() {
		if kind != reconciletest.Faults.InternalError {
			s.Options.SkipFaults = append(s.Options.SkipFaults, kind)
		}
	}
	return s
}

func writesMotto(ctx context.Context, c client.Client, s *Shop) error {
	return ensure(ctx, c, s, owned(c, s, "made", map[string]string{"motto": s.Spec.Motto}))
}

func TestFaultsShareRuns(t *testing.T) {
	const kind = "internal error at: "
	created, updated := kind+"create ConfigMap default/made #1", kind+"update ConfigMap default/made #1"
	tests := map[string]struct {
		reason string
		write  func(ctx context.Context, c client.Client, s *Shop, errors int) error
		runs   int      // the number of runs, with the first one, which has no faults
		faults []string // the faults of the first failure
	}{
		"Survived": {
			reason: "a run has a fault after each action", runs: 2,
			write: func(ctx context.Context, c client.Client, s *Shop, _ int) error { return writesMotto(ctx, c, s) },
		},
		"OneIsToBlame": {
			reason: "each fault gets a run of its own", runs: 5, faults: []string{updated},
			write: func(ctx context.Context, c client.Client, s *Shop, _ int) error {
				if err := writesMotto(ctx, c, s); s.Spec.Motto != "blue" {
					return err
				}
				return nil // the mistake
			},
		},
		"OnlyTogether": {
			reason: "each fault is survived alone", runs: 5, faults: []string{created, updated},
			write: func(ctx context.Context, c client.Client, s *Shop, errors int) error {
				if err := writesMotto(ctx, c, s); errors == 0 {
					return err
				}
				return nil // the mistake: the second error is dropped
			},
		},
		"DoesNotHappen": {
			reason: "after an error the operator sends other requests, so the second fault needs a run of its own", runs: 5,
			write: func(ctx context.Context, c client.Client, s *Shop, errors int) error {
				if errors == 0 {
					return writesMotto(ctx, c, s)
				}
				is := config("made")
				if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil {
					return writesMotto(ctx, c, s)
				}
				if is.Data["motto"] == s.Spec.Motto {
					return nil
				}
				before := is.DeepCopy()
				is.Data["motto"] = s.Spec.Motto
				return c.Patch(ctx, is, client.MergeFrom(before))
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.ExploreQuietly(t, refused(tc.write))
			assert.Equal(t, 3, report.Singles, tc.reason)
			assert.Equal(t, tc.runs, report.Runs, tc.reason)
			assert.Zero(t, report.Missed, tc.reason)
			if tc.faults == nil {
				assert.Empty(t, report.Failures, tc.reason)
				assert.Equal(t, 3, report.Survived[reconciletest.Faults.InternalError], tc.reason)
				return
			}
			require.NotEmpty(t, report.Failures, tc.reason)
			var faults []string
			for _, f := range report.Failures[0].Faults {
				faults = append(faults, f.String())
			}
			assert.Equal(t, tc.faults, faults, "%s: %s", tc.reason, report)
			assert.False(t, report.Failures[0].Varies, "it fails again")
		})
	}
}
