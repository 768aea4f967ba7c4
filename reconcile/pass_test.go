package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
)

func TestAbsentOrBeingDeleted(t *testing.T) {
	tests := map[string]struct {
		reason  string
		prepare func(ctx context.Context, c client.Client, b *budget) error
	}{
		"Gone": {
			reason:  "there is nothing to do, which is no error",
			prepare: func(ctx context.Context, c client.Client, b *budget) error { return c.Delete(ctx, b) },
		},
		"BeingDeleted": {
			reason: "the garbage collector deletes what the object owns: a step must not create it again",
			prepare: func(ctx context.Context, c client.Client, b *budget) error {
				b.Finalizers = []string{"example.com/hold"}
				return errors.Join(c.Update(ctx, b), c.Delete(ctx, b))
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ran := false
			h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error {
				ran = true
				return nil
			})))
			b := &budget{}
			require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, b))
			require.NoError(t, tc.prepare(t.Context(), h.client, b))
			require.Zero(t, h.pass(t))
			require.False(t, ran, tc.reason)
			require.Zero(t, h.writes, tc.reason)
		})
	}
}

// The cache shows our own status write only after a while.
func TestStaleCacheAfterStatusWrite(t *testing.T) {
	var stale *budget
	h := newHarness(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if stale == nil {
			return c.Get(ctx, key, obj, opts...)
		}
		stale.DeepCopyInto(obj.(*budget))
		return nil
	}}, Named("one", returning(nil)))
	first := &budget{}
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, first))
	stale = first
	h.pass(t)
	h.pass(t)
	require.Equal(t, 1, h.writes, "the answer to our own write counts until the cache shows it")
	stale = nil
	h.pass(t)
	require.Equal(t, 1, h.writes)
}

// The operator stops while a step runs, and the step therefore returns an error.
func TestContextCancelled(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	ctx, stop := context.WithCancel(t.Context())
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		stop()
		return ctx.Err()
	})))
	h.recorder = recorder
	_, err := h.Reconcile(ctx, request)
	require.NoError(t, err)
	require.Empty(t, recorder.Events)
	require.Zero(t, h.writes)
}

// If the deadline of a pass has passed, the pass still writes its conditions.
func TestContextDeadlineExceeded(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}}, Named("one", Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		<-ctx.Done()
		return ctx.Err()
	})))
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := h.Reconcile(ctx, request)
	require.NoError(t, err)
	ready, _ := conditions.Get(h.status(t).Conditions, conditions.Ready)
	require.Equal(t, context.DeadlineExceeded.Error(), ready.Message)
}

func TestAfterSteps(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		second error
		prune  error
		want   []string
		ready  string
	}{
		"AllSucceed": {reason: "the function runs after all steps, whichever registered it", want: []string{"first", "second", "prune"}, ready: "Succeeded"},
		"OneWaits":   {reason: "a wait may take long, and must not keep old children alive", second: Wait("Slow", 0, "slow"), want: []string{"first", "second", "prune"}, ready: "Slow"},
		"OneFails":   {reason: "the failed step may have been about to take over what would be deleted", second: boom, want: []string{"first", "second"}, ready: "Failed"},
		"OneIsSkipped": {
			reason: "a skipped step may take over what would be deleted", second: Halt(Wait("Stop", 0, "stop")), want: []string{"first", "second"}, ready: "Stop",
		},
		"PruningFails": {reason: "the failure becomes the outcome of the step that registered the function", prune: boom, want: []string{"first", "second", "prune"}, ready: "Failed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			says := func(what string, err error) stepFunc[*budget] {
				return func(context.Context, client.Client, *budget) error {
					got = append(got, what)
					return err
				}
			}
			h := newHarness(t, interceptor.Funcs{},
				Named("first", stepFunc[*budget](func(ctx context.Context, c client.Client, b *budget) error {
					return errors.Join(says("first", nil)(ctx, c, b),
						afterSteps(ctx, func(ctx context.Context) error { return says("prune", tc.prune)(ctx, c, b) }))
				})),
				Named("second", says("second", tc.second)),
				Named("third", returning(nil)))
			h.pass(t)
			require.Equal(t, tc.want, got, tc.reason)
			for _, c := range h.status(t).Conditions {
				if c.Type == conditions.Ready {
					require.Equal(t, tc.ready, c.Reason)
				}
			}
		})
	}
}

// One step registers several functions. Together they have one outcome, the worst one. A function may register
// another one.
func TestAfterStepsOfOneStep(t *testing.T) {
	var got []string
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		return errors.Join(
			afterSteps(ctx, func(ctx context.Context) error {
				got = append(got, "first")
				return errors.Join(errors.New("boom"), afterSteps(ctx, func(context.Context) error { got = append(got, "third"); return nil }))
			}),
			afterSteps(ctx, func(context.Context) error { got = append(got, "second"); return Wait("W", 0, "waits") }))
	})))
	require.NotZero(t, h.pass(t).RequeueAfter, "the failure is tried again")
	require.Equal(t, []string{"first", "second", "third"}, got)
	ready, _ := conditions.Get(h.status(t).Conditions, "Ready")
	require.Equal(t, "Failed", ready.Reason)
}

const untilRemoved = "nothing is done until the annotation opblocks.dev/paused is removed"

func TestPausedAnnotation(t *testing.T) {
	const untilOne = "nothing is done until 2026-03-01T13:00:00Z or until the annotation opblocks.dev/paused is removed"
	tests := map[string]struct {
		reason  string
		value   string
		message string // the message of the condition; empty without a pause
		after   time.Duration
	}{
		"True":          {reason: "the pause ends when the annotation is removed", value: "true", message: untilRemoved},
		"Empty":         {reason: "an empty value pauses: it comes from kubectl annotate … opblocks.dev/paused=", value: "", message: untilRemoved},
		"UpperCaseWord": {reason: "only \"false\" in lower case does not pause", value: "FALSE", message: untilRemoved},
		"OddValue":      {reason: "any other value pauses: whoever wrote it wanted a pause", value: "tomorrow\n", message: untilRemoved},
		"NoSuchDay":     {reason: "a mistake in the date must not end the pause", value: "2026-02-30T12:00:00Z", message: untilRemoved},
		"AnHour":        {reason: "the next pass runs at the end of the pause, without an event", value: "2026-03-01T13:00:00Z", message: untilOne, after: time.Hour},
		"Zone":          {reason: "the same time in another zone, shown in UTC", value: "2026-03-01T14:00:00+01:00", message: untilOne, after: time.Hour},
		"False":         {reason: "false means the same as no annotation", value: "false"},
		"Now":           {reason: "the pause ends at its time, not after it", value: "2026-03-01T12:00:00Z"},
		"Past":          {reason: "the pause has ended", value: "2020-01-01T00:00:00Z"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ran := 0
			h := newHarness(t, interceptor.Funcs{}, Named("one", counting(&ran)))
			h.annotate(t, tc.value) // before the first pass, as if the object was created with the annotation
			require.Equal(t, tc.after, h.pass(t).RequeueAfter, tc.reason)
			want := []condition{{"Paused", "True", "Paused", tc.message}}
			if tc.message == "" {
				want = []condition{{"Ready", "True", "Succeeded", ""}}
			}
			if diff := cmp.Diff(want, conditionsOf(h.status(t))); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			require.Equal(t, tc.message == "", ran == 1, tc.reason)
			require.EqualValues(t, 3, h.status(t).ObservedGeneration, "a pause observes the generation too")
			h.pass(t)
			require.Equal(t, 1, h.writes, "the condition is not written again")
		})
	}
}

func TestPauseBeginsAndEnds(t *testing.T) {
	ran := 0
	h := newHarness(t, interceptor.Funcs{}, Named("one", counting(&ran)))
	h.pass(t)
	require.Equal(t, 1, ran)

	h.clock.SetTime(noon.Add(time.Minute))
	h.annotate(t, "2026-03-01T13:00:00Z")
	require.Equal(t, 59*time.Minute, h.pass(t).RequeueAfter)
	require.True(t, conditions.IsTrue(h.status(t).Conditions, "Ready"), "Ready keeps its last value")
	paused, _ := conditions.Get(h.status(t).Conditions, "Paused")
	require.True(t, paused.LastTransitionTime.Equal(&metav1.Time{Time: noon.Add(time.Minute)}))

	h.clock.SetTime(noon.Add(2 * time.Minute))
	h.annotate(t, "2026-03-01T12:30:00Z")
	h.pass(t)
	moved, _ := conditions.Get(h.status(t).Conditions, "Paused")
	require.NotEqual(t, paused.Message, moved.Message)
	require.Equal(t, paused.LastTransitionTime, moved.LastTransitionTime, "it is the same pause")

	h.clock.SetTime(noon.Add(30*time.Minute - time.Nanosecond))
	require.Equal(t, time.Nanosecond, h.pass(t).RequeueAfter)
	require.Equal(t, 1, ran)
	h.clock.SetTime(noon.Add(30 * time.Minute))
	require.Zero(t, h.pass(t).RequeueAfter)
	require.Equal(t, 2, ran, "the time ends the pause, although the annotation is still there")
	if diff := cmp.Diff([]condition{{"Ready", "True", "Succeeded", ""}}, conditionsOf(h.status(t))); diff != "" {
		t.Errorf("the condition goes with the pause (-want +got)\n%s", diff)
	}
}

// After a pause, the first pass removes the condition Paused, whatever its outcome is.
func TestPausedConditionIsRemoved(t *testing.T) {
	for name, err := range map[string]error{
		"Success": nil, "Wait": Wait("X", 0, "x"), "Failure": errors.New("boom"), "Stalled": Stalled("X", errors.New("x")),
		"Halt": Halt(errors.New("x")), "Conflict": apierrors.NewConflict(resource, "x", errors.New("modified")),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, Named("one", returning(err)))
			h.annotate(t, "true")
			h.pass(t)
			h.edit(t, func(b *budget) { b.Annotations = nil })
			h.pass(t)
			_, still := conditions.Get(h.status(t).Conditions, "Paused")
			require.False(t, still)
		})
	}
}

func TestPausedObjectIsNotPatched(t *testing.T) {
	sent := 0
	cleaned := false
	h := newHarness(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
		sent++
		return c.Patch(ctx, obj, p, opts...)
	}}, Named("one", cleaning{returning(nil), func(context.Context, client.Client, *budget) error { cleaned = true; return nil }}).Finalizer("example.com/one"))
	h.annotate(t, "true")
	h.pass(t)
	require.Zero(t, sent, "not even a finalizer, since no step acts")

	h.edit(t, func(b *budget) { b.Finalizers = []string{"example.com/one"} })
	require.NoError(t, h.client.Delete(t.Context(), newBudget()))
	h.pass(t)
	require.True(t, cleaned, "a pause does not stop a deletion")
	require.True(t, apierrors.IsNotFound(h.client.Get(t.Context(), request.NamespacedName, &budget{})))
}

func TestPauseStatusWriteFails(t *testing.T) {
	boom := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return boom
	}}, Named("one", returning(nil)))
	h.annotate(t, "2026-03-01T13:00:00Z")
	require.Less(t, h.pass(t).RequeueAfter, time.Second, "the write is retried with backoff, not at the end of the pause")
}

func TestPauseWithoutConditions(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Annotations: map[string]string{PausedAnnotation: "2026-03-01T13:00:00Z"}}}
	c := fake.NewClientBuilder().WithObjects(cm).Build()
	ran := false
	r := New(c, Named("one", Func(func(context.Context, client.Client, *corev1.ConfigMap) error { ran = true; return nil })))
	result, err := r.WithClock(clocktesting.NewFakePassiveClock(noon)).Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, time.Hour, result.RequeueAfter)
	require.False(t, ran)
}
