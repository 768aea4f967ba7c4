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
		"HaltAndFailure":     {"a halt does not hide a failure", errors.Join(Halt(nil), boom), failed, true, true, 0},
		"ConflictAndRefusal": {"a conflict does not hide what is stalled, and is still retried with backoff", errors.Join(conflict, forbidden), stalled, true, false, 0},
		"ConflictAndFailure": {"a conflict does not hide a failure", errors.Join(conflict, boom), failed, true, false, 0},
		"RefusalAlone":       {"what is forbidden has a backoff of its own, see TestForbidden", errors.Join(forbidden), stalled, false, false, 0},
		"TwoWaits":           {"the shortest delay counts; a delay of 0 is none", errors.Join(Wait("A", 0, "a"), errors.Join(Wait("B", time.Minute, "b"), Wait("C", time.Second, "c"))), waiting, false, false, time.Second},
		"HaltedWait":         {"the later steps are skipped, and the delay stays", Halt(Wait("A", time.Second, "a")), waiting, false, true, time.Second},

		"WrappedWaitAndFailure":    {"joined errors are found under a wrapper", fmt.Errorf("x: %w", errors.Join(Wait("W", 0, "w"), boom)), failed, true, false, 0},
		"FailureOfTwoFormatted":    {"fmt.Errorf with several %w joins errors too", fmt.Errorf("%w, %w", Wait("W", 0, "w"), boom), failed, true, false, 0},
		"ReasonForBoth":            {"a reason for joined errors does not change which of them counts", WithReason("X", errors.Join(Wait("W", 0, "w"), boom)), failed, true, false, 0},
		"WrappedHaltAndFailure":    {"a halt counts under a wrapper, and does not hide a failure", fmt.Errorf("x: %w", errors.Join(Halt(nil), boom)), failed, true, true, 0},
		"WrappedSuccessAndFailure": {"a success does not hide a failure", fmt.Errorf("x: %w", errors.Join(Success("D", 0, ""), boom)), failed, true, false, 0},
		"StalledConflict":          {"Stalled replaces the meaning of the error that it wraps", Stalled("Taken", conflict), stalled, false, false, 0},
		"StalledWait":              {"the wait is over, and so is its delay", Stalled("Never", Wait("W", time.Second, "w")), stalled, false, false, 0},
		"StalledHalt":              {"the later steps are skipped nevertheless", Stalled("Never", Halt(boom)), stalled, false, true, 0},
		"TerminalError":            {"the TerminalError of controller-runtime means the same as Stalled", ctrlreconcile.TerminalError(fmt.Errorf("x: %w", errors.Join(conflict, boom))), stalled, false, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := classify(tc.err)
			require.Equal(t, []any{tc.state, tc.retries, tc.halts, tc.after}, []any{o.state, o.retries, o.halts, o.after}, tc.reason)
		})
	}
}

// panickingError is an error whose methods panic, because its embedded pointer is nil.
type panickingError struct{ *waitError }

func TestPanicOfAnError(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(panickingError{})))
	h.pass(t)
	require.Equal(t, `step "one" panicked; the log has the stack`, conditionsOf(h.status(t))[0].Message)
}

func TestMerge(t *testing.T) {
	tests := map[string]struct {
		reason string
		a, b   outcome
		want   outcome
	}{
		"Nothing":      {"success gives way to any other outcome", outcome{reason: reasonSucceeded}, outcome{state: failed, reason: "X"}, outcome{state: failed, reason: "X"}},
		"Worse":        {"the worse outcome counts, also if it comes first", outcome{state: failed, reason: "X"}, outcome{state: waiting, reason: "W"}, outcome{state: failed, reason: "X"}},
		"Equals":       {"of two equal states the first outcome counts", outcome{state: waiting, reason: "A"}, outcome{state: waiting, reason: "B"}, outcome{state: waiting, reason: "A"}},
		"TwoSuccesses": {"of two successes the last counts", outcome{reason: "A"}, outcome{reason: "B"}, outcome{reason: "B"}},
		"Demands": {
			"the delays and demands of both count, whichever state does", outcome{state: stalled, after: time.Minute, notBefore: 1, forbidden: true, halts: true},
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
