package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
)

func TestConditions(t *testing.T) {
	const seconds = time.Second
	tests := map[string]struct {
		reason string
		steps  []NamedStep[*budget]
		want   []condition
		after  time.Duration // the shortest delay; up to a tenth may be added
		unseen bool          // the observed generation stays as it was
	}{
		"Success": {
			reason: "only Ready is set, to True",
			steps:  []NamedStep[*budget]{Named("one", returning(nil))},
			want:   []condition{{"Ready", "True", "Succeeded", ""}},
		},
		"Reporting": {
			reason: "a step may have a condition of its own",
			steps:  []NamedStep[*budget]{Named("one", returning(nil)).Reporting("Available")},
			want:   []condition{{"Available", "True", "Succeeded", ""}, {"Ready", "True", "Succeeded", ""}},
		},
		"WaitingForAnEvent": {
			reason: "a wait without a delay asks for no pass; Reconciling is True, as kstatus demands",
			steps:  []NamedStep[*budget]{Named("one", returning(Wait("Starting", 0, "not yet")))},
			want: []condition{
				{"Ready", "False", "Starting", "not yet"}, {"Reconciling", "True", "Starting", "not yet"},
			},
		},
		"TwoDelays": {
			reason: "the earliest counts, and a waiting step does not stop later ones",
			steps: []NamedStep[*budget]{
				Named("one", returning(Wait("Slow", 30*seconds, "slow"))), Named("two", returning(Wait("Quick", 5*seconds, "quick"))),
			},
			after: 5 * seconds,
			want: []condition{
				{"Ready", "False", "Slow", "one: slow; two: quick"}, {"Reconciling", "True", "Slow", "one: slow; two: quick"},
			},
		},
		"WithItsOwnReason": {
			reason: "Stalled without a reason takes that of the error it wraps",
			steps:  []NamedStep[*budget]{Named("one", returning(Stalled("", WithReason("BadImage", errors.New("no such image")))))},
			after:  stalledRetry,
			want:   []condition{{"Ready", "False", "BadImage", "no such image"}, {"Stalled", "True", "BadImage", "no such image"}},
		},
		"WithAReason": {
			reason: "WithReason changes the reason, and neither the message nor the retry",
			steps:  []NamedStep[*budget]{Named("one", returning(WithReason("CreateFailed", errors.New("boom"))))},
			after:  firstBackoff,
			want:   []condition{{"Ready", "False", "CreateFailed", "boom"}, {"Reconciling", "True", "CreateFailed", "boom"}},
		},
		"Failure": {
			reason: "Ready shows a failure before what waits, and the failure is retried with backoff",
			steps: []NamedStep[*budget]{
				Named("one", returning(Wait("Slow", 30*seconds, "slow"))), Named("two", returning(errors.New("boom"))).Reporting("Two"),
			},
			after: firstBackoff,
			want: []condition{
				{"Two", "False", "Failed", "boom"},
				{"Ready", "False", "Failed", "Two: boom; one: slow"}, {"Reconciling", "True", "Failed", "Two: boom; one: slow"},
			},
		},
		"FailureBesideAnEarlierDelay": {
			reason: "a delay that is shorter than the backoff counts",
			steps: []NamedStep[*budget]{
				Named("one", returning(Wait("Soon", time.Millisecond, "soon"))), Named("two", returning(errors.New("boom"))),
			},
			after: time.Millisecond,
			want: []condition{
				{"Ready", "False", "Failed", "two: boom; one: soon"}, {"Reconciling", "True", "Failed", "two: boom; one: soon"},
			},
		},
		"Stalled": {
			reason: "the step is retried after ten minutes, since policies and quotas change without an event",
			steps:  []NamedStep[*budget]{Named("one", returning(Stalled("BadImage", errors.New("no such image"))))},
			after:  stalledRetry,
			want: []condition{
				{"Ready", "False", "BadImage", "no such image"}, {"Stalled", "True", "BadImage", "no such image"},
			},
		},
		"InvalidForTheAPIServer": {
			reason: "the same request would get the same answer",
			steps: []NamedStep[*budget]{Named("one", returning(fmt.Errorf("create: %w", apierrors.NewInvalid(
				schema.GroupKind{Kind: "Thing"}, "x", nil))))},
			after: stalledRetry,
			want: []condition{
				{"Ready", "False", "Invalid", `create: Thing "x" is invalid`}, {"Stalled", "True", "Invalid", `create: Thing "x" is invalid`},
			},
		},
		"TerminalError": {
			reason: "the TerminalError of controller-runtime means the same as Stalled",
			steps:  []NamedStep[*budget]{Named("one", returning(ctrlreconcile.TerminalError(errors.New("no"))))},
			after:  stalledRetry,
			want: []condition{
				{"Ready", "False", "Invalid", "terminal error: no"}, {"Stalled", "True", "Invalid", "terminal error: no"},
			},
		},
		"Conflict": {
			reason: "a conflict is not a failure: Ready and the condition of the step stay until the next pass",
			steps: []NamedStep[*budget]{
				Named("one", returning(apierrors.NewConflict(resource, "x", errors.New("modified")))).Reporting("One"),
				Named("two", returning(nil)).Reporting("Two"),
			},
			after:  firstBackoff,
			want:   []condition{{"Two", "True", "Succeeded", ""}},
			unseen: true, // Ready is about an earlier generation, so the present generation must not be recorded as observed
		},
		"Halt": {
			reason: "the later steps are skipped, and the conditions that they report are Unknown",
			steps: []NamedStep[*budget]{
				Named("one", returning(Halt(Wait("Starting", 0, "not yet")))), Named("two", returning(errors.New("not reached"))).Reporting("Two"),
			},
			want: []condition{
				{"Two", "Unknown", "Skipped", `step "one" halted the pass`},
				{"Ready", "False", "Starting", "not yet"}, {"Reconciling", "True", "Starting", "not yet"},
			},
		},
		"Optional": {
			reason: "an optional step sets only its own condition; its error is retried nevertheless",
			steps: []NamedStep[*budget]{
				Named("one", returning(nil)), Named("two", returning(errors.New("boom"))).Reporting("Two").Optional(),
			},
			after: firstBackoff,
			want:  []condition{{"Two", "False", "Failed", "boom"}, {"Ready", "True", "Succeeded", ""}},
		},
		"Panic": {
			reason: "a panic is a failure of its step; the later steps run",
			steps: []NamedStep[*budget]{
				Named("one", Func(func(context.Context, client.Client, *budget) error { panic("ouch") })), Named("two", returning(nil)).Reporting("Two"),
			},
			after: firstBackoff,
			want: []condition{
				{"Two", "True", "Succeeded", ""},
				{"Ready", "False", "Failed", `step "one" panicked; the log has the stack`},
				{"Reconciling", "True", "Failed", `step "one" panicked; the log has the stack`},
			},
		},
		"UndeclaredRead": {
			reason: "a forgotten watch is an error in the first test, not a surprise in production",
			steps: []NamedStep[*budget]{Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
				return c.List(ctx, &corev1.PodList{})
			}))},
			after: firstBackoff,
			want: []condition{
				{"Ready", "False", "Failed", undeclaredPod}, {"Reconciling", "True", "Failed", undeclaredPod},
			},
		},
		"DeclaredRead": {
			reason: "a step may read what it watches, and the object's own kind",
			steps: []NamedStep[*budget]{Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
				return errors.Join(c.List(ctx, &corev1.PodList{}), c.Get(ctx, client.ObjectKeyFromObject(b), &budget{}))
			}), Watching(&corev1.Pod{}, nil))},
			want: []condition{{"Ready", "True", "Succeeded", ""}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, tc.steps...)
			result := h.pass(t)
			status := h.status(t)
			if diff := cmp.Diff(tc.want, conditionsOf(status)); diff != "" {
				t.Errorf("%s: conditions (-want +got)\n%s", tc.reason, diff)
			}
			require.GreaterOrEqual(t, result.RequeueAfter, tc.after, tc.reason)
			require.LessOrEqual(t, result.RequeueAfter, tc.after+tc.after/10, tc.reason)
			require.Equal(t, !tc.unseen, status.ObservedGeneration == 3, "%d", status.ObservedGeneration)
			for _, c := range status.Conditions {
				require.EqualValues(t, 3, c.ObservedGeneration, c.Type)
				require.True(t, c.LastTransitionTime.Equal(&metav1.Time{Time: noon}), c.Type)
			}
			h.clock.SetTime(noon.Add(time.Hour))
			h.pass(t)
			require.Equal(t, 1, h.writes, "the same outcome is not written again")
		})
	}
}

const undeclaredPod = "read of Pod, which no step watches: add reconcile.Watching or reconcile.Reads to the step, so that a change of it triggers a reconcile, or read it with a client of your own"

func TestConditionsAfterRecovery(t *testing.T) {
	fail := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return fail })))
	h.pass(t)
	fail = nil
	h.clock.SetTime(noon.Add(time.Minute))
	require.Zero(t, h.pass(t).RequeueAfter)
	if diff := cmp.Diff([]condition{{"Ready", "True", "Succeeded", ""}}, conditionsOf(h.status(t))); diff != "" {
		t.Errorf("Reconciling is removed after the recovery (-want +got)\n%s", diff)
	}
	ready, _ := conditions.Get(h.status(t).Conditions, "Ready")
	require.True(t, ready.LastTransitionTime.Equal(&metav1.Time{Time: noon.Add(time.Minute)}))
}

func TestConditionsWithInvalidReason(t *testing.T) {
	outcome := error(nil)
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return outcome })).Reporting("One"))
	h.pass(t)
	outcome = Wait("with spaces", 0, "not yet")
	require.NotZero(t, h.pass(t).RequeueAfter)
	const message = `not yet (reason "with spaces" is not valid)`
	want := []condition{{"One", "False", "Failed", message}, {"Ready", "False", "Failed", message}, {"Reconciling", "True", "Failed", message}}
	if diff := cmp.Diff(want, conditionsOf(h.status(t))); diff != "" {
		t.Errorf("a Ready of an earlier pass must not stay (-want +got)\n%s", diff)
	}
}

// newHistoryHarness returns a harness whose history keeps the last three conditions.
func newHistoryHarness(t *testing.T, step stepFunc[*budget]) *harness {
	t.Helper()
	h := newHarness(t, interceptor.Funcs{}, Named("one-step", step))
	h.Reconciler.WithHistory(func(b *budget) conditions.List {
		return conditions.Standard().WithClock(h.clock.Now).History(&b.Status.Conditions, 3)
	})
	return h
}

func TestWithHistory(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		err    error
		want   []condition
	}{
		"Success":           {reason: "the step appends its successes itself"},
		"Wait":              {reason: "the step appends its waits itself", err: Wait("Waiting", time.Minute, "for rain")},
		"SuccessWithReason": {reason: "the step appends its successes itself", err: Success("Watered", time.Minute, "it is wet")},
		"Failure":           {reason: "a step cannot append an entry about its own failure", err: boom, want: []condition{{"OneStep", "False", "Failed", "boom"}}},
		"Stalled": {
			reason: "a stalled step has failed too", err: Stalled("Wrong", boom), want: []condition{{"OneStep", "False", "Wrong", "boom"}},
		},
		"KeepConditions": {reason: "another writer sets them", err: KeepConditions(boom)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHistoryHarness(t, returning(tc.err))
			for range 3 {
				h.pass(t)
			}
			require.Equal(t, tc.want, conditionsOf(h.status(t)), "%s; three passes append it once", tc.reason)
		})
	}
}

func TestWithHistoryOfSteps(t *testing.T) {
	var fails error
	h := newHistoryHarness(t, func(_ context.Context, _ client.Client, b *budget) error {
		if fails != nil {
			return fails
		}
		_, _, err := conditions.History(&b.Status.Conditions, 3).Set(metav1.Condition{Type: "Lit", Status: "True", Reason: "Dark"})
		return err
	})
	h.Reconciler.steps[0] = h.Reconciler.steps[0].Reporting("Reconciled")
	lit, failed := condition{"Lit", "True", "Dark", ""}, condition{"Reconciled", "False", "Failed", "boom"}
	h.pass(t)
	h.pass(t)
	require.Equal(t, []condition{lit}, conditionsOf(h.status(t)))
	fails = errors.New("boom")
	h.pass(t)
	require.Equal(t, []condition{lit, failed}, conditionsOf(h.status(t)))
	fails = nil
	h.pass(t)
	require.Equal(t, []condition{lit, failed, lit}, conditionsOf(h.status(t)))
	writes := h.writes
	h.annotate(t, "true")
	h.pass(t)
	h.pass(t)
	require.Equal(t, writes+1, h.writes)
	require.Equal(t, []string{"Reconciled", "Lit", conditions.Paused}, typesOf(h), "the oldest entry is removed: the limit is 3")
	h.annotate(t, "false")
	h.pass(t)
	require.Equal(t, []string{"Lit", conditions.Paused, "Lit"}, typesOf(h))
	require.NotZero(t, h.status(t).ObservedGeneration)
}

func typesOf(h *harness) (types []string) {
	b := &budget{}
	if err := h.client.Get(context.Background(), request.NamespacedName, b); err != nil {
		panic(err)
	}
	for _, c := range b.Status.Conditions {
		types = append(types, c.Type)
	}
	return types
}

// If a history would give two series with the same labels, the metrics endpoint would return an error.
func TestWithHistoryMetrics(t *testing.T) {
	h := newHistoryHarness(t, returning(nil))
	b := newBudget()
	b.Status.Conditions = []metav1.Condition{{Type: "Lit", Status: "True"}, {Type: "Lit", Status: "False"}}
	require.NoError(t, h.prepare())
	require.Equal(t, b.Status.Conditions[1:], h.measured(b), "only the last entry is about the present")
}

// Unless the schema forbids it, whoever may write the status may add a second condition of the same type.
func TestMetricsOfATypeThatOccursTwice(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(nil)))
	b := newBudget()
	b.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Other", Status: "True"}, {Type: "Ready", Status: "False"}}
	require.NoError(t, h.prepare())
	require.Equal(t, b.Status.Conditions[:2], h.measured(b), "the first one counts")
	require.Len(t, b.Status.Conditions, 3, "the status is left as it is")
}

// A step may set a condition on which Ready does not depend. After a conflict of the step, that condition is not set.
func TestSetCondition(t *testing.T) {
	var lost error
	h := newHarness(t, interceptor.Funcs{}, Named("one", conditionStep{"X"}), Named("two", Func(func(ctx context.Context, c client.Client, b *budget) error {
		return errors.Join(conditionStep{"Y"}.Reconcile(ctx, c, b), lost)
	})))
	h.pass(t)
	for _, conditionType := range []string{"X", "Y"} {
		got, _ := conditions.Get(h.status(t).Conditions, conditionType)
		require.Equal(t, []any{metav1.ConditionFalse, "KindNotServed", "m"}, []any{got.Status, got.Reason, got.Message})
	}
	require.True(t, conditions.IsTrue(h.status(t).Conditions, "Ready"), "it does not count")

	lost = apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	b := h.stored(t)
	b.Status.Conditions = nil
	require.NoError(t, h.client.Status().Update(t.Context(), b))
	h.pass(t)
	_, found := conditions.Get(h.status(t).Conditions, "Y")
	require.False(t, found, "what the step has seen may be outdated")
	_, found = conditions.Get(h.status(t).Conditions, "X")
	require.True(t, found, "the other step has lost no race")
}
