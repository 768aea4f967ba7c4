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

// TestExplorationBudget explores the operator with opblocks, and checks how many runs that takes and how much a fault allocates, which decides
// how long it takes. It logs the processor time of a fault.
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
	perFault := (after.TotalAlloc - before.TotalAlloc) / uint64(report.Singles)
	t.Logf("%d runs for %d faults, %d KiB and %s of user time for each fault", report.Runs, report.Singles, perFault>>10, used/time.Duration(report.Singles))
	assert.LessOrEqual(t, report.Runs, 150, "two runs must not show the same, and faults share runs")
	assert.LessOrEqual(t, perFault>>10, uint64(3000), "KiB a fault; measured: 2,700, more when the machine is busy")
}

// userTime returns the user time of the test program.
func userTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano())
}
