package bench

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestExplorationBudget explores the operator with opblocks, and checks how many runs that takes and how much a run allocates, which decides how
// long it takes. It logs the processor time of a run.
func TestExplorationBudget(t *testing.T) {
	scenario := reconciletest.Scenario{
		Scheme: newScheme(), CRDs: []string{"api"},
		Start: func(p *reconciletest.Process) error {
			return reconcile.For(p.Manager(), steps(opblocks)...).Complete()
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(newSite("default", "web")),
			reconciletest.Change(newSite("default", "web"), func(s *api.Site) { s.Spec.Image = "nginx:1.28" }),
			reconciletest.Delete(&appsv1.Deployment{ObjectMeta: newSite("default", "web").ObjectMeta}),
			reconciletest.Delete(newSite("default", "web")),
		},
	}
	once := scenario
	once.Options.WithoutFaults = true
	reconciletest.Explore(t, once) // what is made once is made
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := userTime(t)
	report := reconciletest.Explore(t, scenario)
	used := userTime(t) - begun
	runtime.ReadMemStats(&after)
	perRun := (after.TotalAlloc - before.TotalAlloc) / uint64(report.Runs)
	t.Logf("%d runs, %d KiB and %s of user time each", report.Runs, perRun>>10, used/time.Duration(report.Runs))
	assert.LessOrEqual(t, report.Runs, 290, "two runs must not show the same")
	assert.LessOrEqual(t, perRun>>10, uint64(5000), "KiB a run; measured: 4,500 to 4,900, more when the machine is busy")
}

// userTime returns the user time of the test program.
func userTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano())
}
