package external_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile/external"
)

// annotate sets the interval annotation of the object. This does not change the generation.
func (e *env) annotate(interval string) {
	e.t.Helper()
	e.edit(func(a *Account) {
		a.Annotations = map[string]string{external.IntervalAnnotation: interval}
		a.Generation--
	})
}

func TestIntervalOfAnObject(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		value  string
		floor  time.Duration
		want   time.Duration
		shows  string // the expected reason of Ready
	}{
		"longer":     {"a person knows that it is rarely changed", "2h", 0, 2 * time.Hour, "Succeeded"},
		"shorter":    {"down to a minute", "3m", 0, 3 * time.Minute, "Succeeded"},
		"too short":  {"one object must not use up the quota", "1ms", 0, time.Minute, "Succeeded"},
		"own floor":  {"the operator may allow less", "1ms", 5 * time.Second, 5 * time.Second, "Succeeded"},
		"empty":      {"it counts as absent", "", 0, 10 * time.Minute, "Succeeded"},
		"not valid":  {"it is shown, and the object goes on", "daily", 0, 10 * time.Minute, "InvalidInterval"},
		"no unit":    {"nobody knows what 60 are", "60", 0, 10 * time.Minute, "InvalidInterval"},
		"zero":       {"that is not an interval", "0s", 0, 10 * time.Minute, "InvalidInterval"},
		"below zero": {"that is not an interval", "-1h", 0, 10 * time.Minute, "InvalidInterval"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.EveryAtLeast = tc.floor })
			e.annotate(tc.value)
			_, reason, after := e.pass()
			require.Equal(t, tc.shows, reason)
			require.True(t, conditions.IsTrue(e.object.Status.Conditions, conditions.Ready))
			require.GreaterOrEqual(t, after, tc.want, tc.reason)
			require.LessOrEqual(t, after, tc.want+tc.want/10)
			e.clock.SetTime(e.clock.Now().Add(tc.want - 1))
			calls, _, _ := e.pass()
			require.Empty(t, calls)
			e.clock.SetTime(e.clock.Now().Add(1))
			calls, _, _ = e.pass()
			require.Equal(t, []string{"get alice"}, calls)
		})
	}
}

// TestIntervalIsChanged changes the annotation after one observation and before the next one.
func TestIntervalIsChanged(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	e.annotate("1h")
	e.pass()
	e.clock.SetTime(e.clock.Now().Add(20 * time.Minute))
	e.annotate("30m")
	calls, _, after := e.pass()
	require.Empty(t, calls, "it is not due yet")
	require.InDelta(t, 10*time.Minute, after, float64(time.Minute))
	e.annotate("15m")
	calls, _, _ = e.pass()
	require.Equal(t, []string{"get alice"}, calls, "it was due five minutes ago")
	e.annotate("soon")
	calls, reason, _ := e.pass()
	require.Empty(t, calls)
	require.Equal(t, "InvalidInterval", reason)
	e.edit(func(a *Account) { a.Annotations = nil; a.Generation-- })
	calls, reason, _ = e.pass()
	require.Empty(t, calls)
	require.Equal(t, "Succeeded", reason)
}

// TestPollsComeLast proves which passes have a low priority.
func TestPollsComeLast(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	priority := func() *int {
		result, err := e.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: e.name()})
		require.NoError(t, err)
		return result.Priority
	}
	require.Equal(t, new(handler.LowPriority), priority(), "after a creation")
	require.Equal(t, new(handler.LowPriority), priority(), "after a quiet pass")
	e.api.fail = func(string) (before, after error) { return external.Throttled(time.Minute, errors.New("429")), nil }
	e.edit(func(a *Account) { a.Spec.Quota = 2 })
	require.Nil(t, priority(), "what a person has changed has yet to be done")
	require.Nil(t, priority(), "also if the server is closed")
	e.api.fail = nil
	e.clock.SetTime(e.clock.Now().Add(time.Minute))
	require.Equal(t, new(handler.LowPriority), priority())
}

// If the interval is shorter than the delay after which the step would look again, the interval is used.
func TestShortInterval(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.Every = time.Second })
	_, _, after := e.pass()
	require.GreaterOrEqual(t, after, time.Second)
	require.LessOrEqual(t, after, 1100*time.Millisecond)
}
