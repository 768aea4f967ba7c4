package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestRetryAfter(t *testing.T) {
	busy := func(seconds int) error { return apierrors.NewTooManyRequests("busy", seconds) }
	wait := func(after time.Duration) error { return Wait("Slow", after, "slow") }
	tests := map[string]struct {
		reason string
		errs   []error // of one step each
		status error   // of the status write
		after  time.Duration
	}{
		"busy":                      {reason: "longer than the first backoff", errs: []error{busy(30)}, after: 30 * time.Second},
		"wrapped":                   {reason: "an error tells where it comes from", errs: []error{fmt.Errorf("create: %w", busy(30))}, after: 30 * time.Second},
		"joined":                    {reason: "the longest, since the API server asks for it", errs: []error{errors.Join(busy(5), busy(40), errors.New("boom"))}, after: 40 * time.Second},
		"halted":                    {reason: "a halt changes nothing of it", errs: []error{Halt(busy(30))}, after: 30 * time.Second},
		"timeout":                   {reason: "another answer that asks to wait", errs: []error{apierrors.NewServerTimeout(schema.GroupResource{}, "get", 7)}, after: 7 * time.Second},
		"shorter than backoff":      {reason: "backoff counts", errs: []error{busy(0)}, after: firstBackoff},
		"beside a shorter wait":     {reason: "no request is welcome before", errs: []error{wait(time.Second), busy(30)}, after: 30 * time.Second},
		"beside a longer wait":      {reason: "the failure does not wait for the wait", errs: []error{wait(time.Hour), busy(30)}, after: 30 * time.Second},
		"beside a terminal failure": {reason: "neither hides the other", errs: []error{Stalled("X", errors.New("x")), busy(30)}, after: 30 * time.Second},
		"status write":              {reason: "the same for our own request", errs: []error{nil}, status: busy(30), after: 30 * time.Second},
		"conflict":                  {reason: "no delay is asked for", errs: []error{apierrors.NewConflict(resource, "x", errors.New("x"))}, after: firstBackoff},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var steps []NamedStep[*budget]
			for i, err := range tc.errs {
				steps = append(steps, Named(fmt.Sprint("step ", i), giving(err)))
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

// Backoff grows under it, so that one that is longer counts in turn.
func TestBackoffOutgrowsRetryAfter(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", giving(apierrors.NewTooManyRequests("busy", 2))))
	var last time.Duration
	for range 10 {
		last = h.pass(t).RequeueAfter
		require.GreaterOrEqual(t, last, 2*time.Second)
	}
	require.GreaterOrEqual(t, last, lastBackoff)
}

func TestForbidden(t *testing.T) {
	const message = `create: deployments.apps "web" is forbidden: User "op" cannot create resource "deployments" in API group "apps" in the namespace "shop"`
	err := fmt.Errorf("create: %w", apierrors.NewForbidden(
		schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(`User "op" cannot create resource "deployments" in API group "apps" in the namespace "shop"`)))
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return err })))
	refusals := func(reason string) {
		t.Helper()
		var together time.Duration
		for range quickRefusals {
			after := h.pass(t).RequeueAfter
			require.Positive(t, after)
			together += after
		}
		require.Less(t, together, 2*time.Minute, reason)
		for range 3 {
			require.GreaterOrEqual(t, h.pass(t).RequeueAfter, terminalRetry, "then it is a role or a quota, which heals without an event")
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
	require.LessOrEqual(t, h.pass(t).RequeueAfter, 2*lastBackoff, "a failure beside it is retried as ever")
}

func TestReasonThatIsEmpty(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", giving(Stalled("", errors.New("x")))))
	h.pass(t)
	require.Equal(t, condition{"Ready", "False", "Invalid", "x"}, conditionsOf(h.status(t))[0])
}
