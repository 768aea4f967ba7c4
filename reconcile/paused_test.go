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
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
)

// edit changes the object as a person would.
func (h *harness) edit(t *testing.T, change func(*budget)) {
	t.Helper()
	var b budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
	change(&b)
	require.NoError(t, h.client.Update(t.Context(), &b))
}

func (h *harness) annotate(t *testing.T, value string) {
	t.Helper()
	h.edit(t, func(b *budget) { b.Annotations = map[string]string{PausedAnnotation: value} })
}

func counting(n *int) StepFunc[*budget] {
	return func(context.Context, client.Client, *budget) error { *n++; return nil }
}

const untilRemoved = "nothing is done until the annotation opblocks.dev/paused is removed"

func TestWhatPauses(t *testing.T) {
	const untilOne = "nothing is done until 2026-03-01T13:00:00Z or until the annotation opblocks.dev/paused is removed"
	tests := map[string]struct {
		reason  string
		value   string
		message string // of the condition; empty if there is no pause
		after   time.Duration
	}{
		"true":            {reason: "until it goes", value: "true", message: untilRemoved},
		"empty":           {reason: "kubectl annotate … opblocks.dev/paused=", value: "", message: untilRemoved},
		"upper-case word": {reason: "only \"false\" is as none", value: "FALSE", message: untilRemoved},
		"odd value":       {reason: "who wrote it wanted a pause", value: "tomorrow\n", message: untilRemoved},
		"no such day":     {reason: "a typing mistake must not start things", value: "2026-02-30T12:00:00Z", message: untilRemoved},
		"an hour":         {reason: "the time brings the pass, no event does", value: "2026-03-01T13:00:00Z", message: untilOne, after: time.Hour},
		"zone":            {reason: "the same time in Berlin, shown as UTC", value: "2026-03-01T14:00:00+01:00", message: untilOne, after: time.Hour},
		"false":           {reason: "as none", value: "false"},
		"now":             {reason: "it is over", value: "2026-03-01T12:00:00Z"},
		"past":            {reason: "it is over", value: "2020-01-01T00:00:00Z"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ran := 0
			h := newHarness(t, interceptor.Funcs{}, Named("one", counting(&ran)))
			h.annotate(t, tc.value) // before the first pass: it is created paused
			require.Equal(t, tc.after, h.pass(t).RequeueAfter, tc.reason)
			want := []condition{{"Paused", "True", "Paused", tc.message}}
			if tc.message == "" {
				want = []condition{{"Ready", "True", "Succeeded", ""}}
			}
			if diff := cmp.Diff(want, conditionsOf(h.status(t))); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			require.Equal(t, tc.message == "", ran == 1, tc.reason)
			require.EqualValues(t, 3, h.status(t).ObservedGeneration, "the status is of this generation")
			h.pass(t)
			require.Equal(t, 1, h.writes, "said once")
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
	require.True(t, conditions.IsTrue(h.status(t).Conditions, "Ready"), "what was said last stays")
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
	require.Equal(t, 2, ran, "the clock ends it, and the annotation may stay")
	if diff := cmp.Diff([]condition{{"Ready", "True", "Succeeded", ""}}, conditionsOf(h.status(t))); diff != "" {
		t.Errorf("the condition goes with the pause (-want +got)\n%s", diff)
	}
}

// However a pass after the pause goes, the condition does not stay.
func TestNoStalePausedCondition(t *testing.T) {
	for name, err := range map[string]error{
		"success": nil, "wait": Wait("X", 0, "x"), "failure": errors.New("boom"), "terminal": Stalled("X", errors.New("x")),
		"halt": Halt(errors.New("x")), "conflict": apierrors.NewConflict(resource, "x", errors.New("modified")),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, Named("one", giving(err)))
			h.annotate(t, "true")
			h.pass(t)
			h.edit(t, func(b *budget) { b.Annotations = nil })
			h.pass(t)
			_, still := conditions.Get(h.status(t).Conditions, "Paused")
			require.False(t, still)
		})
	}
}

func TestPausedObjectIsNotTouched(t *testing.T) {
	sent := 0
	cleaned := false
	h := newHarness(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
		sent++
		return c.Patch(ctx, obj, p, opts...)
	}}, Named("one", cleaning{giving(nil), func(context.Context, client.Client, *budget) error { cleaned = true; return nil }}, Finalizer("example.com/one")))
	h.annotate(t, "true")
	h.pass(t)
	require.Zero(t, sent, "not even a finalizer, since no step acts")

	h.edit(t, func(b *budget) { b.Finalizers = []string{"example.com/one"} })
	require.NoError(t, h.client.Delete(t.Context(), newBudget()))
	h.pass(t)
	require.True(t, cleaned, "a pause does not stop a deletion")
	require.True(t, apierrors.IsNotFound(h.client.Get(t.Context(), request.NamespacedName, &budget{})))
}

func TestPauseThatCannotBeShown(t *testing.T) {
	boom := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return boom
	}}, Named("one", giving(nil)))
	h.annotate(t, "2026-03-01T13:00:00Z")
	require.Less(t, h.pass(t).RequeueAfter, time.Second, "tried again by backoff, not at the pause's end")
}

func TestPauseOfAKindWithoutConditions(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Annotations: map[string]string{PausedAnnotation: "2026-03-01T13:00:00Z"}}}
	c := fake.NewClientBuilder().WithObjects(cm).Build()
	ran := false
	r := New(c, Named("one", Func(func(context.Context, client.Client, *corev1.ConfigMap) error { ran = true; return nil })))
	result, err := r.WithClock(clocktesting.NewFakePassiveClock(noon)).Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, time.Hour, result.RequeueAfter)
	require.False(t, ran)
}
