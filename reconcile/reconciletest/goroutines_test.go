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

// If the process starts a goroutine only once and does not end it, that breaks a convention, and the exploration goes on. If a fault leads
// to another goroutine that does not end, that is another finding.
func TestGoroutineOfTheProcess(t *testing.T) {
	tests := map[string]struct {
		reason     string
		afterError bool // a pass leaves another goroutine if its request fails
		kinds      []reconciletest.FindingKind
	}{
		"Once": {
			reason: "such as the scheduler of a cron library, which nothing stops",
			kinds:  []reconciletest.FindingKind{reconciletest.Findings.BreaksConvention},
		},
		"AfterError": {
			reason: "a worker waits for what the pass was to create", afterError: true,
			kinds: []reconciletest.FindingKind{reconciletest.Findings.DoesNotSurvive, reconciletest.Findings.BreaksConvention},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scenario := of(func(*reconciletest.Process) shopFunc {
				go func() { <-make(chan string) }()
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					err := ensure(ctx, c, s, owned(c, s, s.Name, nil))
					if err != nil && tc.afterError {
						go func() { <-make(chan int) }()
					}
					return ctrl.Result{}, err
				}
			}, reconciletest.Create(shop()))
			report := reconciletest.ExploreQuietly(t, with(scenario, reconciletest.Options{Limit: 60}))
			var found []reconciletest.FindingKind
			for _, f := range report.Failures {
				if len(found) == 0 || found[len(found)-1] != f.Kind {
					found = append(found, f.Kind)
				}
			}
			assert.Equal(t, tc.kinds, found, tc.reason)
			last := report.Failures[len(report.Failures)-1]
			require.Empty(t, last.Faults)
			assert.Regexp(t, `^a goroutine is left when the process has ended: .*TestGoroutineOfTheProcess.* started it at goroutines_test\.go:\d+, and it waits: chan receive\n`+
				"It is started once, ", last.Err.Error())
			assert.NotEmpty(t, report.Survived)

			report = reconciletest.ExploreQuietly(t, with(scenario, reconciletest.Options{Limit: 60, SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.BreaksConvention}}))
			assert.Equal(t, tc.afterError, len(report.Failures) > 0, tc.reason)
		})
	}
}
