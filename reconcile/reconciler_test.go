package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
)

// A PodDisruptionBudget has all that a reconciled kind has: a spec, metav1.Conditions and an
// observed generation. In these tests nothing else reconciles it.
type budget = policyv1.PodDisruptionBudget

var request = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}}

func newBudget() *budget {
	return &budget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", Generation: 3}}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// harness is a reconciler on the fake client, which counts status writes.
type harness struct {
	*Reconciler[*budget]
	client client.Client
	clock  *clocktesting.FakePassiveClock
	writes int
}

func newHarness(t *testing.T, funcs interceptor.Funcs, steps ...NamedStep[*budget]) *harness {
	t.Helper()
	h := &harness{clock: clocktesting.NewFakePassiveClock(noon)}
	patch := funcs.SubResourcePatch
	funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		h.writes++
		if patch != nil {
			return patch(ctx, c, sub, obj, p, opts...)
		}
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}
	h.client = fake.NewClientBuilder().WithObjects(newBudget()).WithStatusSubresource(&budget{}).WithInterceptorFuncs(funcs).Build()
	h.Reconciler = New(h.client, steps...).WithClock(h.clock)
	return h
}

func (h *harness) pass(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := h.Reconcile(t.Context(), request)
	require.NoError(t, err)
	return result
}

func (h *harness) status(t *testing.T) policyv1.PodDisruptionBudgetStatus {
	t.Helper()
	var b budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
	return b.Status
}

func giving(err error) StepFunc[*budget] {
	return func(context.Context, client.Client, *budget) error { return err }
}

type condition struct{ Type, Status, Reason, Message string }

func conditionsOf(s policyv1.PodDisruptionBudgetStatus) []condition {
	var list []condition
	for _, c := range s.Conditions {
		list = append(list, condition{c.Type, string(c.Status), c.Reason, c.Message})
	}
	return list
}

var resource = schema.GroupResource{Resource: "things"}

func TestOutcomesAsConditions(t *testing.T) {
	const seconds = time.Second
	tests := map[string]struct {
		reason string
		steps  []NamedStep[*budget]
		want   []condition
		after  time.Duration // at least, and at most a tenth more
		unseen bool          // the generation is not observed yet
	}{
		"success": {
			reason: "Ready is True, and nothing else is said",
			steps:  []NamedStep[*budget]{Named("one", giving(nil))},
			want:   []condition{{"Ready", "True", "Succeeded", ""}},
		},
		"reporting": {
			reason: "a step may have a condition of its own",
			steps:  []NamedStep[*budget]{Named("one", giving(nil), Reporting("Available"))},
			want:   []condition{{"Available", "True", "Succeeded", ""}, {"Ready", "True", "Succeeded", ""}},
		},
		"waiting for an event": {
			reason: "no timer; Reconciling as kstatus has it",
			steps:  []NamedStep[*budget]{Named("one", giving(Wait("Starting", 0, "not yet")))},
			want: []condition{
				{"Ready", "False", "Starting", "not yet"}, {"Reconciling", "True", "Starting", "not yet"},
			},
		},
		"two delays": {
			reason: "the earliest counts, and a waiting step does not stop later ones",
			steps: []NamedStep[*budget]{
				Named("one", giving(Wait("Slow", 30*seconds, "slow"))), Named("two", giving(Wait("Quick", 5*seconds, "quick"))),
			},
			after: 5 * seconds,
			want: []condition{
				{"Ready", "False", "Slow", "one: slow; two: quick"}, {"Reconciling", "True", "Slow", "one: slow; two: quick"},
			},
		},
		"with its own reason": {
			reason: "what cannot heal by itself may say why itself",
			steps:  []NamedStep[*budget]{Named("one", giving(Stalled("", WithReason("BadImage", errors.New("no such image")))))},
			after:  terminalRetry,
			want:   []condition{{"Ready", "False", "BadImage", "no such image"}, {"Stalled", "True", "BadImage", "no such image"}},
		},
		"with a reason": {
			reason: "who says why is shown, and the rest is as without",
			steps:  []NamedStep[*budget]{Named("one", giving(WithReason("CreateFailed", errors.New("boom"))))},
			after:  firstBackoff,
			want:   []condition{{"Ready", "False", "CreateFailed", "boom"}, {"Reconciling", "True", "CreateFailed", "boom"}},
		},
		"failure": {
			reason: "a failure comes first in Ready, whatever waits, and is retried by backoff",
			steps: []NamedStep[*budget]{
				Named("one", giving(Wait("Slow", 30*seconds, "slow"))), Named("two", giving(errors.New("boom")), Reporting("Two")),
			},
			after: firstBackoff,
			want: []condition{
				{"Two", "False", "Failed", "boom"},
				{"Ready", "False", "Failed", "Two: boom; one: slow"}, {"Reconciling", "True", "Failed", "Two: boom; one: slow"},
			},
		},
		"failure beside an earlier delay": {
			reason: "a delay and an error do not get lost for each other",
			steps: []NamedStep[*budget]{
				Named("one", giving(Wait("Soon", time.Millisecond, "soon"))), Named("two", giving(errors.New("boom"))),
			},
			after: time.Millisecond,
			want: []condition{
				{"Ready", "False", "Failed", "two: boom; one: soon"}, {"Reconciling", "True", "Failed", "two: boom; one: soon"},
			},
		},
		"terminal": {
			reason: "Stalled, and tried again in ten minutes, since policies and quotas heal without an event",
			steps:  []NamedStep[*budget]{Named("one", giving(Stalled("BadImage", errors.New("no such image"))))},
			after:  terminalRetry,
			want: []condition{
				{"Ready", "False", "BadImage", "no such image"}, {"Stalled", "True", "BadImage", "no such image"},
			},
		},
		"invalid for the API server": {
			reason: "the same request would get the same answer",
			steps: []NamedStep[*budget]{Named("one", giving(fmt.Errorf("create: %w", apierrors.NewInvalid(
				schema.GroupKind{Kind: "Thing"}, "x", nil))))},
			after: terminalRetry,
			want: []condition{
				{"Ready", "False", "Invalid", `create: Thing "x" is invalid`}, {"Stalled", "True", "Invalid", `create: Thing "x" is invalid`},
			},
		},
		"terminal for controller-runtime": {
			reason: "its own word for it counts too",
			steps:  []NamedStep[*budget]{Named("one", giving(ctrlreconcile.TerminalError(errors.New("no"))))},
			after:  terminalRetry,
			want: []condition{
				{"Ready", "False", "Invalid", "terminal error: no"}, {"Stalled", "True", "Invalid", "terminal error: no"},
			},
		},
		"conflict": {
			reason: "no failure: nothing is said until the next pass knows",
			steps: []NamedStep[*budget]{
				Named("one", giving(apierrors.NewConflict(resource, "x", errors.New("modified"))), Reporting("One")),
				Named("two", giving(nil), Reporting("Two")),
			},
			after:  firstBackoff,
			want:   []condition{{"Two", "True", "Succeeded", ""}},
			unseen: true, // or a Ready that tells of the generation before would be taken for the present one's
		},
		"halt": {
			reason: "later steps are skipped, and what they report is unknown",
			steps: []NamedStep[*budget]{
				Named("one", giving(Halt(Wait("Starting", 0, "not yet")))), Named("two", giving(errors.New("not reached")), Reporting("Two")),
			},
			want: []condition{
				{"Two", "Unknown", "Skipped", `step "one" halted the pass`},
				{"Ready", "False", "Starting", "not yet"}, {"Reconciling", "True", "Starting", "not yet"},
			},
		},
		"optional": {
			reason: "an optional step shows its condition and no more; its error is retried nevertheless",
			steps: []NamedStep[*budget]{
				Named("one", giving(nil)), Named("two", giving(errors.New("boom")), Reporting("Two"), Optional()),
			},
			after: firstBackoff,
			want:  []condition{{"Two", "False", "Failed", "boom"}, {"Ready", "True", "Succeeded", ""}},
		},
		"panic": {
			reason: "a panic is its step's failure; later steps run",
			steps: []NamedStep[*budget]{
				Named("one", Func(func(context.Context, client.Client, *budget) error { panic("ouch") })), Named("two", giving(nil), Reporting("Two")),
			},
			after: firstBackoff,
			want: []condition{
				{"Two", "True", "Succeeded", ""},
				{"Ready", "False", "Failed", `step "one" panicked; the log has the stack`},
				{"Reconciling", "True", "Failed", `step "one" panicked; the log has the stack`},
			},
		},
		"undeclared read": {
			reason: "a forgotten watch is an error in the first test, not a surprise in production",
			steps: []NamedStep[*budget]{Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
				return c.List(ctx, &corev1.PodList{})
			}))},
			after: firstBackoff,
			want: []condition{
				{"Ready", "False", "Failed", undeclaredPod}, {"Reconciling", "True", "Failed", undeclaredPod},
			},
		},
		"declared read": {
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
			require.Equal(t, 1, h.writes, "the same outcome again is not written")
		})
	}
}

const undeclaredPod = "read of Pod, which no step watches: give the step reconcile.Watching or reconcile.Referencing, so that a change of it brings a pass, or read it with a client of your own"

func TestRecovery(t *testing.T) {
	fail := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return fail })))
	h.pass(t)
	fail = nil
	h.clock.SetTime(noon.Add(time.Minute))
	require.Zero(t, h.pass(t).RequeueAfter)
	if diff := cmp.Diff([]condition{{"Ready", "True", "Succeeded", ""}}, conditionsOf(h.status(t))); diff != "" {
		t.Errorf("Reconciling goes with its reason (-want +got)\n%s", diff)
	}
	ready, _ := conditions.Get(h.status(t).Conditions, "Ready")
	require.True(t, ready.LastTransitionTime.Equal(&metav1.Time{Time: noon.Add(time.Minute)}))
}

func TestAnErrorIsLoggedOnce(t *testing.T) {
	fail := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return fail })))
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	pass := func() {
		_, err := h.Reconcile(ctx, request)
		require.NoError(t, err)
	}
	pass()
	pass()
	require.Len(t, lines, 1, "the conditions show that it goes on")
	fail = errors.New("bang")
	pass()
	require.Len(t, lines, 2, "another error is news")
	fail = nil
	pass()
	fail = errors.New("bang")
	pass()
	require.Len(t, lines, 3, "so is one after a success")
}

func TestBackoffIsBoundedAndForgotten(t *testing.T) {
	fail := errors.New("boom")
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return fail })))
	var last time.Duration
	for range 20 {
		last = h.pass(t).RequeueAfter
		require.LessOrEqual(t, last, lastBackoff+lastBackoff/10)
	}
	require.GreaterOrEqual(t, last, lastBackoff)
	fail = nil
	h.pass(t)
	fail = errors.New("boom")
	require.Less(t, h.pass(t).RequeueAfter, 2*firstBackoff)
}

func TestConditionSetToAndFroKeepsItsTime(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(_ context.Context, _ client.Client, b *budget) error {
		for _, status := range []metav1.ConditionStatus{"True", "False"} {
			if _, _, err := conditions.Set(&b.Status.Conditions, metav1.Condition{Type: "Flapping", Status: status, Reason: "X"}); err != nil {
				return err
			}
		}
		return nil
	})))
	h.pass(t)
	for range 3 {
		h.pass(t)
	}
	require.Equal(t, 1, h.writes, "a status that ends as it began is not written")
}

func TestInvalidReasonIsShownNevertheless(t *testing.T) {
	outcome := error(nil)
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(context.Context, client.Client, *budget) error { return outcome }), Reporting("One")))
	h.pass(t)
	outcome = Wait("with spaces", 0, "not yet")
	require.NotZero(t, h.pass(t).RequeueAfter)
	const message = `not yet (reason "with spaces" is not valid)`
	want := []condition{{"One", "False", "Failed", message}, {"Ready", "False", "Failed", message}, {"Reconciling", "True", "Failed", message}}
	if diff := cmp.Diff(want, conditionsOf(h.status(t))); diff != "" {
		t.Errorf("an old Ready must not stay beside it (-want +got)\n%s", diff)
	}
}

// rude is an error that cannot even be printed.
type rude struct{ *waitError }

func TestErrorThatPanics(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", giving(rude{})))
	h.pass(t)
	require.Equal(t, `step "one" panicked; the log has the stack`, conditionsOf(h.status(t))[0].Message)
}

func TestJoinedErrors(t *testing.T) {
	conflict := apierrors.NewConflict(resource, "x", errors.New("modified"))
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("no"))
	boom := errors.New("boom")
	tests := map[string]struct {
		reason  string
		err     error
		state   state
		retries bool
		halts   bool
		after   time.Duration
	}{
		"wait and failure":     {"a wait does not hide a failure", errors.Join(Wait("R", time.Hour, "w"), boom), failed, true, false, time.Hour},
		"halt and failure":     {"nor does a halt", errors.Join(Halt(nil), boom), failed, true, true, 0},
		"conflict and refusal": {"nor does a conflict, which is retried all the same", errors.Join(conflict, forbidden), terminal, true, false, 0},
		"conflict and failure": {"a failure is shown", errors.Join(conflict, boom), failed, true, false, 0},
		"refusal alone":        {"no backoff", errors.Join(forbidden), terminal, false, false, 0},
		"two waits":            {"the shortest", errors.Join(Wait("A", 0, "a"), errors.Join(Wait("B", time.Minute, "b"), Wait("C", time.Second, "c"))), waiting, false, false, time.Second},
		"halted wait":          {"both", Halt(Wait("A", time.Second, "a")), waiting, false, true, time.Second},

		"wrapped wait and failure": {"nor does one under a wrapper", fmt.Errorf("x: %w", errors.Join(Wait("W", 0, "w"), boom)), failed, true, false, 0},
		"failure of two formatted": {"formatted ones are joined too", fmt.Errorf("%w, %w", Wait("W", 0, "w"), boom), failed, true, false, 0},
		"reason for both":          {"a reason is none to wait", WithReason("X", errors.Join(Wait("W", 0, "w"), boom)), failed, true, false, 0},
		"wrapped halt and failure": {"both", fmt.Errorf("x: %w", errors.Join(Halt(nil), boom)), failed, true, true, 0},
		"wrapped done and failure": {"it is not done", fmt.Errorf("x: %w", errors.Join(Success("D", 0, ""), boom)), failed, true, false, 0},
		"terminal race":            {"the step knows better", Stalled("Taken", conflict), terminal, false, false, 0},
		"terminal wait":            {"the same", Stalled("Never", Wait("W", time.Second, "w")), terminal, false, false, 0},
		"terminal halt":            {"both", Stalled("Never", Halt(boom)), terminal, false, true, 0},
		"controller-runtime's":     {"the same as ours", ctrlreconcile.TerminalError(fmt.Errorf("x: %w", errors.Join(conflict, boom))), terminal, false, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcomeOf(tc.err)
			require.Equal(t, []any{tc.state, tc.retries, tc.halts, tc.after}, []any{o.state, o.retries, o.halts, o.after}, tc.reason)
		})
	}
}

func TestConflictWithoutEndIsShown(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", giving(apierrors.NewAlreadyExists(resource, "x"))))
	for range quietConflicts {
		h.pass(t)
		require.Empty(t, h.status(t).Conditions)
	}
	h.pass(t)
	ready, _ := conditions.Get(h.status(t).Conditions, "Ready")
	require.Equal(t, "Conflict", ready.Reason)

	h = newHarness(t, interceptor.Funcs{}, Named("one", giving(WithReason("NameTaken", apierrors.NewAlreadyExists(resource, "x")))))
	for range quietConflicts + 1 {
		h.pass(t)
	}
	ready, _ = conditions.Get(h.status(t).Conditions, "Ready")
	require.Equal(t, "NameTaken", ready.Reason, "the step's own words")
}

func TestTerminalOfNothingIsNothing(t *testing.T) {
	require.NoError(t, WithReason("Wrong", nil))
	require.NoError(t, WithReason("X", nil))
	require.NoError(t, Stalled("X", nil))
}

func TestGoneOrBeingDeleted(t *testing.T) {
	tests := map[string]struct {
		reason  string
		prepare func(ctx context.Context, c client.Client, b *budget) error
	}{
		"gone": {
			reason:  "no error: there is nothing to do",
			prepare: func(ctx context.Context, c client.Client, b *budget) error { return c.Delete(ctx, b) },
		},
		"being deleted": {
			reason: "what it owns is being collected, and must not be made anew",
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

func TestStatusErrors(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		again  bool
	}{
		"conflict":  {reason: "repeated quietly", err: apierrors.NewConflict(resource, "a", errors.New("modified")), again: true},
		"not found": {reason: "deleted meanwhile: nothing is left to write to", err: apierrors.NewNotFound(resource, "a")},
		"forbidden": {reason: "repeated", err: apierrors.NewForbidden(resource, "a", errors.New("no")), again: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, _ string, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
				if apierrors.IsNotFound(tc.err) {
					return errors.Join(c.Delete(ctx, obj), tc.err)
				}
				return tc.err
			}}, Named("one", giving(nil)))
			require.Equal(t, tc.again, h.pass(t).RequeueAfter > 0, tc.reason)
		})
	}
}

// A cache shows our own status write only after a while.
func TestStaleReadAfterOwnStatusWrite(t *testing.T) {
	var stale *budget
	h := newHarness(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if stale == nil {
			return c.Get(ctx, key, obj, opts...)
		}
		stale.DeepCopyInto(obj.(*budget))
		return nil
	}}, Named("one", giving(nil)))
	first := &budget{}
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, first))
	stale = first
	h.pass(t)
	h.pass(t)
	require.Equal(t, 1, h.writes, "what was written counts until the cache shows it")
	stale = nil
	h.pass(t)
	require.Equal(t, 1, h.writes)
}

func TestWhatIsWrongWithTheSteps(t *testing.T) {
	tests := map[string]struct {
		steps []NamedStep[*budget]
		says  string
	}{
		"none":              {nil, "needs a step"},
		"no name":           {[]NamedStep[*budget]{Named("", giving(nil))}, "needs a name"},
		"same name":         {[]NamedStep[*budget]{Named("a", giving(nil)), Named("a", giving(nil))}, `two steps are named "a"`},
		"same condition":    {[]NamedStep[*budget]{Named("a", giving(nil), Reporting("X")), Named("b", giving(nil), Reporting("X"))}, `two steps report the condition "X"`},
		"kind not known":    {[]NamedStep[*budget]{Named("a", giving(nil), Watching(&unknown{}, nil))}, "add its types to the manager's scheme"},
		"condition no type": {[]NamedStep[*budget]{Named("a", giving(nil), Reporting("not good"))}, `condition "not good", which is no valid type`},
		"condition taken":   {[]NamedStep[*budget]{Named("a", giving(nil), Reporting("Ready"))}, `condition "Ready", which the pass sets itself`},
		"name taken":        {[]NamedStep[*budget]{Named("Stalled", giving(nil))}, `named "Stalled", by which the pass itself speaks`},
		"literal, not made": {[]NamedStep[*budget]{{}}, "make it with Named"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(fake.NewFakeClient(), tc.steps...).Reconcile(t.Context(), request)
			require.ErrorContains(t, err, tc.says)
			require.ErrorIs(t, err, ctrlreconcile.TerminalError(nil), "no backoff heals it")
		})
	}
	_, err := New(fake.NewFakeClient(), Named("a", StepFunc[client.Object](nil))).Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "give a pointer to an API type")

	for says, typ := range map[string]reflect.Type{
		"is no plain struct": reflect.TypeFor[struct{ Status *budget }](),
		"embeds the pointer": reflect.TypeFor[struct {
			Status struct {
				*policyv1.PodDisruptionBudgetStatus
			}
		}](),
	} {
		_, err := newStatusType(typ, conditions.Standard())
		require.ErrorContains(t, err, says)
	}
}

func TestAfterStepsAndNeverAfterAnError(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		second error
		prune  error
		want   []string
		ready  string
	}{
		"all succeed": {reason: "last, whatever the order of the steps", want: []string{"first", "second", "prune"}, ready: "Succeeded"},
		"one waits":   {reason: "a rollout may take long", second: Wait("Slow", 0, "slow"), want: []string{"first", "second", "prune"}, ready: "Slow"},
		"one fails":   {reason: "what is to be deleted may have moved there", second: boom, want: []string{"first", "second"}, ready: "Failed"},
		"one is skipped": {
			reason: "so may it have, to the step that did not run", second: Halt(Wait("Stop", 0, "stop")), want: []string{"first", "second"}, ready: "Stop",
		},
		"pruning fails": {reason: "it is the step's outcome", prune: boom, want: []string{"first", "second", "prune"}, ready: "Failed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			says := func(what string, err error) StepFunc[*budget] {
				return func(context.Context, client.Client, *budget) error {
					got = append(got, what)
					return err
				}
			}
			h := newHarness(t, interceptor.Funcs{},
				Named("first", StepFunc[*budget](func(ctx context.Context, c client.Client, b *budget) error {
					return errors.Join(says("first", nil)(ctx, c, b),
						afterSteps(ctx, func(ctx context.Context) error { return says("prune", tc.prune)(ctx, c, b) }))
				})),
				Named("second", says("second", tc.second)),
				Named("third", giving(nil)))
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

// What one step leaves is one outcome, whose worst part counts, and what that leaves is done too.
func TestSeveralThingsLeft(t *testing.T) {
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

type unknown struct{ corev1.Pod }

func TestKindWithoutStatus(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(cm).Build()
	r := New(c, Named("one", Func(func(context.Context, client.Client, *corev1.ConfigMap) error { return Wait("X", time.Second, "x") })))
	result, err := r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, time.Second, result.RequeueAfter)
}

func TestStatusPatch(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*policyv1.PodDisruptionBudgetStatus)
		want   string
	}{
		"field": {
			reason: "other writers' fields are not in it, nor is a version",
			change: func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 2 },
			want:   `{"metadata":{"uid":"u"},"status":{"currentHealthy":2}}`,
		},
		"list": {
			reason: "a list is replaced whole, so nobody may have written it since",
			change: func(s *policyv1.PodDisruptionBudgetStatus) {
				s.Conditions = []metav1.Condition{{Type: "X", Status: "True", Reason: "Y"}}
			},
			want: `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"conditions":[{"lastTransitionTime":null,"message":"","reason":"Y","status":"True","type":"X"}]}}`,
		},
		"removal": {
			reason: "what goes may have been a list",
			change: func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptedPods = nil },
			want:   `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"disruptedPods":null}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := newBudget()
			before.ResourceVersion = "7"
			before.Status.DisruptedPods = map[string]metav1.Time{"p": {Time: noon}}
			after := before.DeepCopy()
			after.Labels = map[string]string{"step": "changed this"}
			tc.change(&after.Status)
			r := New(fake.NewFakeClient(), Named("one", giving(nil)))
			require.False(t, r.status.equal(before, after))
			got, err := r.status.patch(before, after, false)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, string(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// lamp is a kind with conditions of its own.
type lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            lampStatus `json:"status"`
}

type lampStatus struct{ lampState }

type lampState struct {
	Conditions         []light  `json:"conditions,omitempty"`
	ObservedGeneration int64    `json:"observedGeneration,omitempty"`
	Rooms              []string `json:"rooms"`

	Levels map[string]int `json:"levels"`
}

type light struct {
	Type string `json:"type"`
	On   string `json:"on"`
}

func (l *lamp) DeepCopyObject() runtime.Object { c := *l; return &c }

type lights struct{}

func (lights) Read(l light) metav1.Condition {
	return metav1.Condition{Type: l.Type, Status: metav1.ConditionStatus(l.On)}
}

func (lights) Write(_ light, to metav1.Condition, _ metav1.Time) light {
	return light{Type: to.Type, On: string(to.Status)}
}

func (lights) Validate(metav1.Condition) error { return nil }

func lampScheme() *runtime.Scheme {
	types := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "test.opblocks.dev", Version: "v1"}
	types.AddKnownTypes(gv, &lamp{})
	metav1.AddToGroupVersion(types, gv)
	return types
}

func TestConditionsOfOnesOwn(t *testing.T) {
	types := lampScheme()
	l := &lamp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 2}}
	c := fake.NewClientBuilder().WithScheme(types).WithObjects(l).WithStatusSubresource(l).Build()
	step := Named("one", Func(func(context.Context, client.Client, *lamp) error { return nil }))

	_, err := New(c, step).Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "give WithConditions an adapter")

	_, err = New(c, step).WithConditions(conditions.NewEditor[light](lights{})).Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), request.NamespacedName, l))
	want := lampState{Conditions: []light{{"Ready", "True"}}, ObservedGeneration: 2, Rooms: []string{}, Levels: map[string]int{}}
	if diff := cmp.Diff(want, l.Status.lampState); diff != "" {
		t.Errorf("found through an embedded struct; a required list or map is empty, not null (-want +got)\n%s", diff)
	}
}

func TestKindWithoutStatusSubresource(t *testing.T) {
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	types, l := lampScheme(), &lamp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	c := fake.NewClientBuilder().WithScheme(types).WithObjects(l).Build()
	step := Named("one", Func(func(context.Context, client.Client, *lamp) error { return nil }))
	result, err := New(c, step).WithConditions(conditions.NewEditor[light](lights{})).Reconcile(ctx, request)
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "+kubebuilder:subresource:status", "the error says what to add")
}

func TestFirstStatusIsSentWhole(t *testing.T) {
	before := newBudget()
	before.ResourceVersion = "7"
	after := before.DeepCopy()
	after.Status.ObservedGeneration = 1
	r := New(fake.NewFakeClient(), Named("one", giving(nil)))
	got, err := r.status.patch(before, after, false)
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0,"observedGeneration":1}}`,
		string(got), "a schema may require a field that stayed zero")
}
