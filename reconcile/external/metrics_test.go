package external_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// series returns the metrics whose names have the prefix, as text without the prefix.
func series(t *testing.T, r *prometheus.Registry, prefix string) (all []string) {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		name, ok := strings.CutPrefix(f.GetName(), "opblocks_external_")
		if !ok || !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, m := range f.GetMetric() {
			text := name
			for _, l := range m.GetLabel() {
				text += " " + l.GetName() + "=" + l.GetValue()
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			all = append(all, fmt.Sprint(text, " ", value))
		}
	}
	slices.Sort(all)
	return all
}

func newMeasuredEnv(t *testing.T, edit func(*external.Resource[*Account, entry])) (*env, *prometheus.Registry) {
	t.Helper()
	e, r := newEnv(t, external.ByKey, edit), prometheus.NewRegistry()
	require.NoError(t, e.step.Measure(r))
	return e, r
}

func requireSeries(t *testing.T, r *prometheus.Registry, reason, prefix string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, series(t, r, prefix)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", reason, diff)
	}
}

func TestCallMetrics(t *testing.T) {
	e, r := newMeasuredEnv(t, nil)
	requireSeries(t, r, "nothing was called yet", "")
	answers := []error{
		external.Refused("No", errors.New("no")), external.Throttled(time.Second, errors.New("429")), external.Unreachable(errors.New("503")),
		external.ErrExists, reconcile.Wait("Creating", time.Second, "not yet"), errors.New("other"), nil,
	}
	for _, answer := range answers {
		e.api.fail = func(call string) (before, after error) {
			if call == "create alice" {
				return answer, nil
			}
			return nil, nil
		}
		e.pass()
		e.clock.SetTime(e.clock.Now().Add(time.Minute))
	}
	e.edit(func(a *Account) { a.Spec.Quota = 2 })
	e.pass()
	require.NoError(t, e.Delete(t.Context(), e.object))
	e.pass()
	const of = "calls_total kind=Account result="
	requireSeries(t, r, "by verb and result", "calls_total",
		of+"failed step=account verb=create 1",
		of+"not_found step=account verb=observe 9", // once before each creation, once after ErrExists, and once after the deletion
		of+"refused step=account verb=create 2",
		of+"succeeded step=account verb=create 1",
		of+"succeeded step=account verb=delete 1",
		of+"succeeded step=account verb=observe 2", // once for the update, and once before the deletion, to find out whose thing it is
		of+"succeeded step=account verb=update 1",
		of+"throttled step=account verb=create 1",
		of+"unreachable step=account verb=create 1",
		of+"waiting step=account verb=create 1")
	const duration = "call_duration_seconds kind=Account step=account verb="
	requireSeries(t, r, "each call has a duration", "call_duration", duration+"create 7", duration+"delete 1", duration+"observe 11", duration+"update 1")
}

func TestWaitingMetric(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func(*external.Resource[*Account, entry])
		answer error
		want   string
	}{
		"quota":       {"there is no token", func(r *external.Resource[*Account, entry]) { r.Quota = rate.NewLimiter(0, 0) }, nil, "quota"},
		"throttling":  {"the API has asked for it", nil, external.Throttled(time.Minute, errors.New("429")), "throttling"},
		"unreachable": {"the server is spared", nil, external.Unreachable(errors.New("503")), "unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			e, r := newMeasuredEnv(t, tc.edit)
			e.api.fail = func(string) (before, after error) { return tc.answer, nil }
			want := "waiting_objects kind=Account reason=" + tc.want + " step=account 1"
			for range 3 { // in the first pass the object itself gets the answer, and in the others it may not call the API
				e.pass()
				requireSeries(t, r, tc.reason, "waiting_objects", want)
			}
			e.edit(func(a *Account) { a.Finalizers = nil })
			require.NoError(t, e.Delete(t.Context(), e.object))
			e.pass()
			requireSeries(t, r, "an object that is gone does not wait", "waiting_objects")
		})
	}
}

func TestSparedServersMetric(t *testing.T) {
	const spared = "spared_servers kind=Account step=account "
	e, r := newMeasuredEnv(t, func(r *external.Resource[*Account, entry]) {
		r.Server = func(*Account) string { return "https://root:" + secret + "@db.example.com" }
	})
	e.api.fail = func(string) (before, after error) { return external.Unreachable(errors.New("503")), nil }
	e.pass()
	requireSeries(t, r, "servers are counted, and not named", "spared_servers", spared+"1")
	require.NotContains(t, strings.Join(series(t, r, ""), "\n"), secret)
	e.clock.SetTime(e.clock.Now().Add(time.Second))
	e.api.fail = nil
	e.pass()
	requireSeries(t, r, "it answers again", "spared_servers", spared+"0")

	e.api.fail = func(string) (before, after error) { return external.Unreachable(errors.New("503")), nil }
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	e.pass()
	requireSeries(t, r, "it fails again", "spared_servers", spared+"1")
	e.clock.SetTime(e.clock.Now().Add(6 * time.Minute))
	requireSeries(t, r, "nobody calls it any more", "spared_servers", spared+"0")
}

func TestNotReturnedMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		e, r := newMeasuredEnv(t, func(r *external.Resource[*Account, entry]) { r.Observe = h.observe })
		e.pass()
		requireSeries(t, r, "its context has ended", "calls_not_returned", "calls_not_returned kind=Account step=account 1")
		e.pass()
		requireSeries(t, r, "the object waits for it", "waiting_objects", "waiting_objects kind=Account reason=not_returned step=account 1")
		close(h.resume)
		synctest.Wait()
		requireSeries(t, r, "it has returned", "calls_not_returned", "calls_not_returned kind=Account step=account 0")
	})
}

// If two steps have the same kind and name, for example in two managers, they share the metrics.
func TestMetricsAreRegisteredOnce(t *testing.T) {
	one, r := newMeasuredEnv(t, nil)
	two := newEnv(t, external.ByKey, nil)
	require.NoError(t, two.step.Measure(r))
	require.NoError(t, two.step.Measure(r), "also twice for one step")
	for _, e := range []*env{one, two} {
		e.api.fail = func(string) (before, after error) { return external.Unreachable(errors.New("503")), nil }
		e.pass()
	}
	requireSeries(t, r, "they are added", "spared_servers", "spared_servers kind=Account step=account 2")
	requireSeries(t, r, "they are added", "calls_total", "calls_total kind=Account result=unreachable step=account verb=observe 2")

	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "opblocks_external_calls_total", Help: "somebody else's"}))
	require.Error(t, two.step.Measure(taken))
}
