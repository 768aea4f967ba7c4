package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
)

func TestJitter(t *testing.T) {
	one, other := types.NamespacedName{Namespace: "shop", Name: "ann"}, types.NamespacedName{Namespace: "shop", Name: "bob"}
	assert.Equal(t, jitter(time.Minute, one, 3), jitter(time.Minute, one, 3), "the same object and attempt have the same delay")
	assert.NotEqual(t, jitter(time.Minute, one, 3), jitter(time.Minute, other, 3), "objects that failed together are not retried together")
	assert.NotEqual(t, jitter(time.Minute, one, 3), jitter(time.Minute, one, 4), "two attempts have different delays")
	assert.Zero(t, jitter(0, one, 0), "without a delay there is nothing to add to")
	for attempt := range 1000 {
		d := jitter(time.Minute, one, attempt)
		assert.GreaterOrEqual(t, d, time.Minute)
		assert.LessOrEqual(t, d, time.Minute+6*time.Second, "at most a tenth is added, as the documentation says")
	}
}

func TestRetryAfter(t *testing.T) {
	busy := func(seconds int) error { return apierrors.NewTooManyRequests("busy", seconds) }
	wait := func(after time.Duration) error { return Wait("Slow", after, "slow") }
	tests := map[string]struct {
		reason string
		errs   []error // one error for each step
		status error   // the error of the status write
		after  time.Duration
	}{
		"Busy":               {reason: "the delay of the API server is longer than the first backoff", errs: []error{busy(30)}, after: 30 * time.Second},
		"Wrapped":            {reason: "a wrapped error is found", errs: []error{fmt.Errorf("create: %w", busy(30))}, after: 30 * time.Second},
		"Joined":             {reason: "the longest delay counts: the API server asks for each of them", errs: []error{errors.Join(busy(5), busy(40), errors.New("boom"))}, after: 40 * time.Second},
		"Halted":             {reason: "a halt does not change the delay", errs: []error{Halt(busy(30))}, after: 30 * time.Second},
		"Timeout":            {reason: "another answer that asks to wait", errs: []error{apierrors.NewServerTimeout(schema.GroupResource{}, "get", 7)}, after: 7 * time.Second},
		"ShorterThanBackoff": {reason: "the backoff is longer than the delay of the API server", errs: []error{busy(0)}, after: firstBackoff},
		"BesideAShorterWait": {reason: "the API server does not want a request before its delay", errs: []error{wait(time.Second), busy(30)}, after: 30 * time.Second},
		"BesideALongerWait":  {reason: "the failure is retried before the wait ends", errs: []error{wait(time.Hour), busy(30)}, after: 30 * time.Second},
		"BesideAStalledStep": {reason: "the 10 minutes of the stalled step do not delay the failed one", errs: []error{Stalled("X", errors.New("x")), busy(30)}, after: 30 * time.Second},
		"StatusWrite":        {reason: "the status write of the pass itself is retried in the same way", errs: []error{nil}, status: busy(30), after: 30 * time.Second},
		"Conflict":           {reason: "a conflict asks for no delay, and is retried with backoff", errs: []error{apierrors.NewConflict(resource, "x", errors.New("x"))}, after: firstBackoff},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var steps []NamedStep[*budget]
			for i, err := range tc.errs {
				steps = append(steps, Named(fmt.Sprint("step ", i), returning(err)))
			}
			h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if tc.status != nil {
					return tc.status
				}
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			}}, steps...)
			after := h.pass(t).RequeueAfter
			require.GreaterOrEqual(t, after, tc.after, tc.reason)
			require.LessOrEqual(t, after, tc.after+tc.after/10, tc.reason)
		})
	}
}

// The backoff also grows while the API server asks for a delay. The longer of the two is used.
func TestBackoffOutgrowsRetryAfter(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(apierrors.NewTooManyRequests("busy", 2))))
	var last time.Duration
	for range 10 {
		last = h.pass(t).RequeueAfter
		require.GreaterOrEqual(t, last, 2*time.Second)
	}
	require.GreaterOrEqual(t, last, maxBackoff)
}

func TestBackoffIsBoundedAndReset(t *testing.T) {
	fail := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return fail })))
	var last time.Duration
	for range 20 {
		last = h.pass(t).RequeueAfter
		require.LessOrEqual(t, last, maxBackoff+maxBackoff/10)
	}
	require.GreaterOrEqual(t, last, maxBackoff)
	fail = nil
	h.pass(t)
	fail = errors.New("boom")
	require.Less(t, h.pass(t).RequeueAfter, 2*firstBackoff)
}

func TestQuietConflicts(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(apierrors.NewAlreadyExists(resource, "x"))))
	for range quietConflicts {
		h.pass(t)
		require.Empty(t, h.status(t).Conditions)
	}
	h.pass(t)
	ready, _ := conditions.Get(h.status(t).Conditions, "Ready")
	require.Equal(t, "Conflict", ready.Reason)

	h = newHarness(t, interceptor.Funcs{}, Named("one", returning(WithReason("NameTaken", apierrors.NewAlreadyExists(resource, "x")))))
	for range quietConflicts + 1 {
		h.pass(t)
	}
	ready, _ = conditions.Get(h.status(t).Conditions, "Ready")
	require.Equal(t, "NameTaken", ready.Reason, "the reason of the step stays when the conflict becomes a failure")
}

func TestForbidden(t *testing.T) {
	const message = `create: deployments.apps "web" is forbidden: User "op" cannot create resource "deployments" in API group "apps" in the namespace "shop"`
	err := fmt.Errorf("create: %w", apierrors.NewForbidden(
		schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(`User "op" cannot create resource "deployments" in API group "apps" in the namespace "shop"`)))
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return err })))
	requireSoonThenStalled := func(reason string) {
		t.Helper()
		first := h.clock.Now()
		for h.clock.Since(first) < 5*time.Minute {
			after := h.pass(t).RequeueAfter
			require.Positive(t, after)
			require.LessOrEqual(t, after, time.Minute, reason)
			h.clock.SetTime(h.clock.Now().Add(after))
		}
		for range 3 {
			require.GreaterOrEqual(t, h.pass(t).RequeueAfter, stalledRetry, "after that a role or a quota is the likely cause, which changes without an event")
			h.clock.SetTime(h.clock.Now().Add(stalledRetry))
		}
	}
	requireSoonThenStalled("roles may arrive a little after the operator")
	require.Equal(t, []condition{{"Ready", "False", "Forbidden", message}, {"Stalled", "True", "Forbidden", message}}, conditionsOf(h.status(t)))
	refused := err
	err = nil
	require.Zero(t, h.pass(t).RequeueAfter)
	err = refused
	requireSoonThenStalled("a pass to which nothing was forbidden ends the row")
	err = errors.Join(refused, errors.New("boom"))
	require.LessOrEqual(t, h.pass(t).RequeueAfter, 2*maxBackoff, "another failure beside it is retried with its usual backoff")
	err = refused
	h.retries = Retries{First: 2 * time.Minute, Longest: time.Hour, Stalled: time.Hour}
	h.memory.forget(request.NamespacedName)
	require.LessOrEqual(t, h.pass(t).RequeueAfter, time.Minute, "also with longer delays of other failures")
}

// An object is being deleted, and a permission was removed before it, for example together with its namespace. The request is
// retried until the object is gone.
func TestForbiddenWhileDeleting(t *testing.T) {
	err := error(apierrors.NewForbidden(resource, "x", errors.New("no role")))
	h := newHarness(t, interceptor.Funcs{}, Named("one", cleaning{returning(nil), func(context.Context, client.Client, *budget) error { return err }}).
		Finalizer("example.com/one"))
	h.pass(t)
	h.delete(t)
	for range 30 {
		after := h.pass(t).RequeueAfter
		require.Positive(t, after)
		require.LessOrEqual(t, after, time.Minute)
		h.clock.SetTime(h.clock.Now().Add(after))
	}
	require.GreaterOrEqual(t, h.clock.Since(noon), 10*time.Minute)
	err = nil
	require.Zero(t, h.pass(t).RequeueAfter)
	require.Equal(t, []string{"the object is gone"}, h.finalizers(t))
}

func TestRetries(t *testing.T) {
	tests := map[string]struct {
		reason  string
		retries Retries
		err     error
		want    []time.Duration // the delays after each of the passes, without jitter
		invalid string
	}{
		"Defaults": {reason: "zero values are the documented defaults", err: errors.New("boom"), want: []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}},
		"First":    {reason: "the delay doubles from there", retries: Retries{First: 10 * time.Second}, err: errors.New("boom"), want: []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute}},
		"Longest":  {reason: "the doubling ends there", retries: Retries{Longest: 600 * time.Millisecond}, err: errors.New("boom"), want: []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond}},
		"Equal":    {reason: "a constant delay", retries: Retries{First: 5 * time.Second, Longest: 5 * time.Second}, err: errors.New("boom"), want: []time.Duration{5 * time.Second, 5 * time.Second}},
		"Conflict": {reason: "a conflict has the same backoff", retries: Retries{First: time.Second}, err: apierrors.NewConflict(resource, "x", errors.New("x")), want: []time.Duration{time.Second, 2 * time.Second}},
		"Stalled":  {reason: "what only a change can heal", retries: Retries{Stalled: time.Minute}, err: Stalled("X", errors.New("x")), want: []time.Duration{time.Minute, time.Minute}},
		"Never":    {reason: "the longest delay there is, to which nothing can be added", retries: Retries{Stalled: math.MaxInt64}, err: Stalled("X", errors.New("x")), want: []time.Duration{math.MaxInt64}},

		"NegativeFirst":  {retries: Retries{First: -time.Second}, invalid: "reconciler of v1.PodDisruptionBudget: WithRetries: First is -1s: set it to 1ms or more, such as 5*time.Second, or to 0 for the default 250ms"},
		"NoUnit":         {retries: Retries{Stalled: 30}, invalid: "reconciler of v1.PodDisruptionBudget: WithRetries: Stalled is 30ns: set it to 1ms or more, such as 5*time.Second, or to 0 for the default 10m0s"},
		"NegativeLong":   {retries: Retries{Longest: -1}, invalid: "reconciler of v1.PodDisruptionBudget: WithRetries: Longest is -1ns: set it to 1ms or more, such as 5*time.Second, or to 0 for the default 1m0s"},
		"FirstIsLonger":  {retries: Retries{First: 2 * time.Minute}, invalid: "reconciler of v1.PodDisruptionBudget: WithRetries: First (2m0s) is longer than Longest (1m0s): set both"},
		"LongestTooLow":  {retries: Retries{Longest: 100 * time.Millisecond}, invalid: "reconciler of v1.PodDisruptionBudget: WithRetries: First (250ms) is longer than Longest (100ms): set both"},
		"FirstIsLongest": {reason: "the bound holds for the first failure too", retries: Retries{First: time.Minute}, err: errors.New("boom"), want: []time.Duration{time.Minute, time.Minute}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, Named("one", returning(tc.err)))
			h.WithRetries(tc.retries)
			if tc.invalid != "" {
				_, err := h.Reconcile(t.Context(), request)
				require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil))
				require.ErrorContains(t, err, tc.invalid)
				return
			}
			for _, want := range tc.want {
				after := h.pass(t).RequeueAfter
				require.GreaterOrEqual(t, after, want, tc.reason)
				require.LessOrEqual(t, float64(after), 1.1*float64(want), tc.reason)
			}
		})
	}
}
