package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestConditionMetric(t *testing.T) {
	outcome := Halt(errors.New("boom"))
	h := newHarness(t, interceptor.Funcs{},
		Named("one", Func(func(context.Context, client.Client, *budget) error { return outcome })),
		Named("two", returning(nil)).Reporting("Two"))
	r := h.withMetrics(t)
	const of = "kind=PodDisruptionBudget name=a namespace=ns type="
	want := func(reason string, series ...string) {
		t.Helper()
		if diff := cmp.Diff(series, r.series(t, "opblocks_condition")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", reason, diff)
		}
	}
	h.pass(t)
	want("False is 0, and Unknown -1", of+"Ready 0", of+"Reconciling 1", of+"Two -1")
	outcome = nil
	h.pass(t)
	want("a condition that is removed has no series", of+"Ready 1", of+"Two 1")
	h.annotate(t, "true")
	h.pass(t)
	want("the condition Paused has a series", of+"Paused 1", of+"Ready 1", of+"Two 1")

	restarted := &harness{Reconciler: New(h.client, Named("one", returning(nil))).WithClock(h.clock), client: h.client}
	r = restarted.withMetrics(t)
	restarted.pass(t)
	want("a new process shows the conditions that it reads, without a write", of+"Paused 1", of+"Ready 1", of+"Two 1")

	require.NoError(t, h.client.Delete(t.Context(), newBudget()))
	restarted.pass(t)
	want("an object that is gone has no series")
}

// Two reconcilers may have objects with the same kind and name: in two API groups, or because one reconciler replaces
// the other.
func TestConditionMetricOfAnotherReconciler(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(nil)))
	r := h.withMetrics(t)
	h.pass(t)
	other := &harness{Reconciler: New(h.client, Named("one", returning(nil))).WithFilter(func(*budget) bool { return false }), client: h.client}
	var err error
	other.metrics, err = newMetrics(r, "PodDisruptionBudget")
	require.NoError(t, err)
	other.pass(t)
	require.NotEmpty(t, r.series(t, "opblocks_condition"), "an object that the filter of one reconciler excludes keeps the series of the other")
}

func TestStepMetrics(t *testing.T) {
	outcomes := []error{nil, nil, Wait("X", 0, "x"), errors.New("boom"), Stalled("X", errors.New("x"))}
	n := 0
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error {
		n++
		return outcomes[n-1]
	})))
	r := h.withMetrics(t)
	for range outcomes {
		h.pass(t)
	}
	const of = "kind=PodDisruptionBudget result="
	want := []string{of + "failed step=one 1", of + "stalled step=one 1", of + "succeeded step=one 2", of + "waiting step=one 1"}
	if diff := cmp.Diff(want, r.series(t, "opblocks_step_results_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	require.Equal(t, []string{"kind=PodDisruptionBudget step=one 5"}, r.series(t, "opblocks_step_duration_seconds"))
}

// Passes that fail are counted in controller-runtime's counters of errors. Passes that wait or meet a conflict are
// not counted.
func TestErrorMetrics(t *testing.T) {
	tests := map[string]struct {
		reason    string
		err       error
		readFails bool
		status    error
		errs, ter float64
	}{
		"success":                  {reason: "nothing has failed"},
		"a wait":                   {reason: "nothing is wrong", err: Wait("X", time.Minute, "x")},
		"a conflict":               {reason: "somebody was faster", err: apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("x"))},
		"a failure":                {reason: "it is retried", err: errors.New("boom"), errs: 1},
		"stalled":                  {reason: "it is not retried soon, as a TerminalError", err: Stalled("X", errors.New("x")), errs: 1, ter: 1},
		"the status":               {reason: "the pass itself has failed", status: errors.New("boom"), errs: 1},
		"both":                     {reason: "one pass counts once", err: errors.New("boom"), status: errors.New("boom"), errs: 1},
		"a conflict of the status": {reason: "somebody was faster", status: apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("x"))},
		"the read":                 {reason: "the pass could not begin", readFails: true, errs: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			funcs := interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if tc.status != nil {
					return tc.status
				}
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			}}
			if tc.readFails {
				funcs.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return errors.New("boom")
				}
			}
			h := newHarness(t, funcs, Named("one", returning(tc.err)))
			r := h.withMetrics(t)
			_, err := h.Reconcile(t.Context(), request)
			require.NoError(t, err)
			const of = "controller=poddisruptionbudget "
			require.Equal(t, []string{fmt.Sprint(of, tc.errs)}, r.series(t, "controller_runtime_reconcile_errors_total"), tc.reason)
			require.Equal(t, []string{fmt.Sprint(of, tc.ter)}, r.series(t, "controller_runtime_terminal_reconcile_errors_total"), tc.reason)
		})
	}
}

// The counters must be controller-runtime's own ones, in every version of it, and not others with the same names.
func TestErrorMetricsAreShared(t *testing.T) {
	m, err := newMetrics(ctrlmetrics.Registry, "Shared")
	require.NoError(t, err)
	values := func() map[string]float64 {
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(t, err)
		found := map[string]float64{}
		for _, family := range families {
			for _, series := range family.GetMetric() {
				for _, label := range series.GetLabel() {
					if label.GetName() == "controller" && label.GetValue() == "shared" {
						found[family.GetName()] = series.GetCounter().GetValue()
					}
				}
			}
		}
		return found
	}
	want := values()
	m.pass(stalled)
	want["controller_runtime_reconcile_errors_total"]++
	want["controller_runtime_terminal_reconcile_errors_total"]++
	require.Equal(t, want, values())
}

// If a step has registered a function by AfterSteps, the metrics count it as another run of the step.
func TestStepMetricsOfAfterSteps(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{},
		Named("one", Func(func(ctx context.Context, _ client.Client, _ *budget) error {
			return afterSteps(ctx, func(context.Context) error { return nil })
		})),
		Named("two", returning(nil)))
	r := h.withMetrics(t)
	h.pass(t)
	const of = "kind=PodDisruptionBudget result=succeeded step="
	require.Equal(t, []string{of + "one 2", of + "two 1"}, r.series(t, "opblocks_step_results_total"))
}

// After objects were created and deleted, the metrics have no series of them. Messages, reasons and versions are not
// labels.
func TestMetricsAreBounded(t *testing.T) {
	n := 0
	h := newHarness(t, interceptor.Funcs{}, Named("one", cleaning{Func(func(context.Context, client.Client, *budget) error {
		n++
		return Stalled(fmt.Sprint("Reason", n), fmt.Errorf("message %d", n))
	}), returning(nil)}).Finalizer("example.com/one"))
	r := h.withMetrics(t)
	for i := range 50 {
		b := newBudget()
		b.Name = fmt.Sprint("b", i)
		require.NoError(t, h.client.Create(t.Context(), b))
		run := func() ctrl.Result {
			result, err := h.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
			require.NoError(t, err)
			return result
		}
		run()
		require.Len(t, r.series(t, "opblocks_condition"), 2, "Ready and Stalled of the one that is there")
		require.NoError(t, h.client.Delete(t.Context(), b))
		run()
		require.Zero(t, run())
	}
	require.Empty(t, r.series(t, "opblocks_condition"))
	require.Empty(t, h.metrics.conditions.byObject)
	require.LessOrEqual(t, len(r.series(t, "opblocks_step_results_total")), 2)
	require.Len(t, r.series(t, "opblocks_step_duration_seconds"), 1)
	require.Empty(t, h.memory.objects, "nothing is remembered of objects that are gone")
	require.False(t, h.Reconciler.writes.Pending(), "no write of ours is remembered")
}

// Two reconcilers of a process share the collectors.
func TestMetricsAreRegisteredOnce(t *testing.T) {
	r := prometheus.NewRegistry()
	one, err := newMetrics(r, "One")
	require.NoError(t, err)
	two, err := newMetrics(r, "Two")
	require.NoError(t, err)
	one.step("a", time.Now(), &outcome{})
	two.step("a", time.Now(), &outcome{})
	require.Len(t, registry{r}.series(t, "opblocks_step_results_total"), 2)

	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "opblocks_condition", Help: "somebody else's"}))
	_, err = newMetrics(taken, "One")
	require.Error(t, err)
}

func TestValueOf(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]float64{"True": 1, "False": 0, "Unknown": -1} {
		require.InDelta(t, want, valueOf(status), 0)
	}
}
