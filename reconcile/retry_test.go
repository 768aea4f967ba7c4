package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
)

func TestJitter(t *testing.T) {
	one, other := types.NamespacedName{Namespace: "shop", Name: "ann"}, types.NamespacedName{Namespace: "shop", Name: "bob"}
	assert.Equal(t, jitter(time.Minute, one, 3), jitter(time.Minute, one, 3), "the same again")
	assert.NotEqual(t, jitter(time.Minute, one, 3), jitter(time.Minute, other, 3), "objects that failed together part")
	assert.NotEqual(t, jitter(time.Minute, one, 3), jitter(time.Minute, one, 4), "and so do attempts")
	assert.Zero(t, jitter(0, one, 0), "no delay stays none")
	for attempt := range 1000 {
		d := jitter(time.Minute, one, attempt)
		assert.GreaterOrEqual(t, d, time.Minute)
		assert.LessOrEqual(t, d, time.Minute+6*time.Second, "a tenth, as the documentation says")
	}
}

func TestRetryAfter(t *testing.T) {
	busy := func(seconds int) error { return apierrors.NewTooManyRequests("busy", seconds) }
	wait := func(after time.Duration) error { return Wait("Slow", after, "slow") }
	tests := map[string]struct {
		reason string
		errs   []error // of one step each
		status error   // of the status write
		after  time.Duration
	}{
		"Busy":               {reason: "longer than the first backoff", errs: []error{busy(30)}, after: 30 * time.Second},
		"Wrapped":            {reason: "a wrapped error is found", errs: []error{fmt.Errorf("create: %w", busy(30))}, after: 30 * time.Second},
		"Joined":             {reason: "the longest, since the API server asks for it", errs: []error{errors.Join(busy(5), busy(40), errors.New("boom"))}, after: 40 * time.Second},
		"Halted":             {reason: "a halt changes nothing of it", errs: []error{Halt(busy(30))}, after: 30 * time.Second},
		"Timeout":            {reason: "another answer that asks to wait", errs: []error{apierrors.NewServerTimeout(schema.GroupResource{}, "get", 7)}, after: 7 * time.Second},
		"ShorterThanBackoff": {reason: "backoff counts", errs: []error{busy(0)}, after: firstBackoff},
		"BesideAShorterWait": {reason: "no request is welcome before", errs: []error{wait(time.Second), busy(30)}, after: 30 * time.Second},
		"BesideALongerWait":  {reason: "the failure does not wait for the wait", errs: []error{wait(time.Hour), busy(30)}, after: 30 * time.Second},
		"BesideAStalledStep": {reason: "neither hides the other", errs: []error{Stalled("X", errors.New("x")), busy(30)}, after: 30 * time.Second},
		"StatusWrite":        {reason: "the same for our own request", errs: []error{nil}, status: busy(30), after: 30 * time.Second},
		"Conflict":           {reason: "no delay is asked for", errs: []error{apierrors.NewConflict(resource, "x", errors.New("x"))}, after: firstBackoff},
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

// The backoff grows at the same time. Once it is longer, it counts.
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
	require.Equal(t, "NameTaken", ready.Reason, "the step's own words")
}

func TestForbidden(t *testing.T) {
	const message = `create: deployments.apps "web" is forbidden: User "op" cannot create resource "deployments" in API group "apps" in the namespace "shop"`
	err := fmt.Errorf("create: %w", apierrors.NewForbidden(
		schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(`User "op" cannot create resource "deployments" in API group "apps" in the namespace "shop"`)))
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return err })))
	refusals := func(reason string) {
		t.Helper()
		var together time.Duration
		for range quickForbidden {
			after := h.pass(t).RequeueAfter
			require.Positive(t, after)
			together += after
		}
		require.Less(t, together, 2*time.Minute, reason)
		for range 3 {
			require.GreaterOrEqual(t, h.pass(t).RequeueAfter, stalledRetry, "then it is a role or a quota, which heals without an event")
		}
	}
	refusals("an API server that has just started forbids everything")
	require.Equal(t, []condition{{"Ready", "False", "Forbidden", message}, {"Stalled", "True", "Forbidden", message}}, conditionsOf(h.status(t)))
	refused := err
	err = nil
	require.Zero(t, h.pass(t).RequeueAfter)
	err = refused
	refusals("after a success it may be a new start")
	err = errors.Join(refused, errors.New("boom"))
	require.LessOrEqual(t, h.pass(t).RequeueAfter, 2*maxBackoff, "a failure beside it is retried as ever")
}
