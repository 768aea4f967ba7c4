package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestClassify(t *testing.T) {
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
		"WaitAndFailure":     {"a wait does not hide a failure", errors.Join(Wait("R", time.Hour, "w"), boom), failed, true, false, time.Hour},
		"HaltAndFailure":     {"nor does a halt", errors.Join(Halt(nil), boom), failed, true, true, 0},
		"ConflictAndRefusal": {"nor does a conflict, which is retried all the same", errors.Join(conflict, forbidden), stalled, true, false, 0},
		"ConflictAndFailure": {"a failure is shown", errors.Join(conflict, boom), failed, true, false, 0},
		"RefusalAlone":       {"no backoff", errors.Join(forbidden), stalled, false, false, 0},
		"TwoWaits":           {"the shortest", errors.Join(Wait("A", 0, "a"), errors.Join(Wait("B", time.Minute, "b"), Wait("C", time.Second, "c"))), waiting, false, false, time.Second},
		"HaltedWait":         {"both", Halt(Wait("A", time.Second, "a")), waiting, false, true, time.Second},

		"WrappedWaitAndFailure": {"nor does one under a wrapper", fmt.Errorf("x: %w", errors.Join(Wait("W", 0, "w"), boom)), failed, true, false, 0},
		"FailureOfTwoFormatted": {"formatted ones are joined too", fmt.Errorf("%w, %w", Wait("W", 0, "w"), boom), failed, true, false, 0},
		"ReasonForBoth":         {"a reason is none to wait", WithReason("X", errors.Join(Wait("W", 0, "w"), boom)), failed, true, false, 0},
		"WrappedHaltAndFailure": {"both", fmt.Errorf("x: %w", errors.Join(Halt(nil), boom)), failed, true, true, 0},
		"WrappedDoneAndFailure": {"it is not done", fmt.Errorf("x: %w", errors.Join(Success("D", 0, ""), boom)), failed, true, false, 0},
		"StalledConflict":       {"the step knows better", Stalled("Taken", conflict), stalled, false, false, 0},
		"StalledWait":           {"the same", Stalled("Never", Wait("W", time.Second, "w")), stalled, false, false, 0},
		"StalledHalt":           {"both", Stalled("Never", Halt(boom)), stalled, false, true, 0},
		"TerminalError":         {"the same as ours", ctrlreconcile.TerminalError(fmt.Errorf("x: %w", errors.Join(conflict, boom))), stalled, false, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := classify(tc.err)
			require.Equal(t, []any{tc.state, tc.retries, tc.halts, tc.after}, []any{o.state, o.retries, o.halts, o.after}, tc.reason)
		})
	}
}

// rude is an error whose method panics.
type rude struct{ *waitError }

func TestPanicOfAnError(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(rude{})))
	h.pass(t)
	require.Equal(t, `step "one" panicked; the log has the stack`, conditionsOf(h.status(t))[0].Message)
}

func TestMerge(t *testing.T) {
	tests := map[string]struct {
		reason string
		a, b   outcome
		want   outcome
	}{
		"Nothing":      {"the outcome of no error changes nothing", outcome{reason: reasonSucceeded}, outcome{state: failed, reason: "X"}, outcome{state: failed, reason: "X"}},
		"Worse":        {"the worse one is shown, in whatever order", outcome{state: failed, reason: "X"}, outcome{state: waiting, reason: "W"}, outcome{state: failed, reason: "X"}},
		"Equals":       {"of equals the first", outcome{state: waiting, reason: "A"}, outcome{state: waiting, reason: "B"}, outcome{state: waiting, reason: "A"}},
		"TwoSuccesses": {"of successes the last", outcome{reason: "A"}, outcome{reason: "B"}, outcome{reason: "B"}},
		"Demands": {
			"all of them hold", outcome{state: stalled, after: time.Minute, notBefore: 1, forbidden: true, halts: true},
			outcome{state: conflicted, after: time.Second, notBefore: 2, retries: true, keepsConditions: true},
			outcome{state: stalled, after: time.Second, notBefore: 2, forbidden: true, halts: true, retries: true, keepsConditions: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, merge(tc.a, tc.b), cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
