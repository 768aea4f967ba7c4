package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Deployments have conditions of their own kind, which belong to the Deployment controller.
func TestWithoutStatus(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		step   StepFunc[*appsv1.Deployment]
		paused bool
		after  time.Duration
		events int
	}{
		"success": {reason: "nothing to say", step: func(_ context.Context, _ client.Client, d *appsv1.Deployment) error {
			d.Status.Replicas = 7 // in memory, and nowhere else
			return nil
		}},
		"wait":    {reason: "the delay is kept", step: func(context.Context, client.Client, *appsv1.Deployment) error { return Wait("X", time.Minute, "x") }, after: time.Minute},
		"failure": {reason: "an event tells, and backoff", step: func(context.Context, client.Client, *appsv1.Deployment) error { return boom }, after: firstBackoff, events: 1},
		"paused":  {reason: "nothing is done", step: func(context.Context, client.Client, *appsv1.Deployment) error { return boom }, paused: true},
		"checkpoint": {reason: "an error, since it would record nothing", step: func(ctx context.Context, _ client.Client, d *appsv1.Deployment) error {
			d.Status.Replicas = 7
			return Checkpoint(ctx)
		}, after: firstBackoff, events: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			count := func() { writes++ }
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 2}}
			if tc.paused {
				d.Annotations = map[string]string{PausedAnnotation: "true"}
			}
			c := fake.NewClientBuilder().WithObjects(d).WithStatusSubresource(d).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					count()
					return nil
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					count()
					return nil
				},
			}).Build()
			recorder := &told{}
			r := New(c, Named("one", Func(tc.step))).WithoutStatus()
			r.recorder = recorder
			for range 2 {
				result, err := r.Reconcile(t.Context(), request)
				require.NoError(t, err)
				require.GreaterOrEqual(t, result.RequeueAfter, tc.after, tc.reason)
				require.LessOrEqual(t, result.RequeueAfter, 3*tc.after, tc.reason)
			}
			require.Zero(t, writes, tc.reason)
			require.Len(t, recorder.take(), tc.events, tc.reason)
		})
	}
}

func TestStatusThatIsNotOurs(t *testing.T) {
	c := fake.NewFakeClient()
	step := Func(func(context.Context, client.Client, *appsv1.Deployment) error { return nil })
	_, err := New(c, Named("one", step)).Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "or say WithoutStatus if the status is not yours")
	_, err = New(c, Named("one", step, Reporting("Available"))).WithoutStatus().Reconcile(t.Context(), request)
	require.ErrorContains(t, err, `step "one" reports the condition "Available", and the status is not ours`)
}
