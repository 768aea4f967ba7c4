package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

var errDatabaseDown = errors.New("the database is down")

// TestSuccessUntil proves that a step that has something to do at a certain time is not called too late.
func TestSuccessUntil(t *testing.T) {
	scheduled := SuccessUntil("Scheduled", 10*time.Minute, "every night")
	tests := map[string]struct {
		reason string
		errs   []error // one error for each step
		want   time.Duration
	}{
		"Alone":              {reason: "nothing is added to the delay", errs: []error{scheduled}, want: 10 * time.Minute},
		"BesideASuccess":     {reason: "the jitter of another step does not make it late", errs: []error{scheduled, Success("Done", 10*time.Minute, "")}, want: 10 * time.Minute},
		"JoinedWithASuccess": {reason: "nor does that of the same step", errs: []error{errors.Join(Success("Done", 10*time.Minute, ""), scheduled)}, want: 10 * time.Minute},
		"BesideAShorterWait": {reason: "the shortest delay counts", errs: []error{scheduled, Wait("Slow", time.Minute, "slow")}, want: time.Minute},
		"JoinedWithAWait":    {reason: "the step waits, and still asks for its delay", errs: []error{errors.Join(scheduled, Wait("Slow", 0, "slow"))}, want: 10 * time.Minute},
		"BesideALongerStall": {reason: "a stalled step does not delay it", errs: []error{scheduled, Stalled("X", errors.New("x"))}, want: 10 * time.Minute},
		"WithoutADelay":      {reason: "an event triggers the next pass", errs: []error{SuccessUntil("Scheduled", 0, "")}, want: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var steps []NamedStep[*budget]
			for i, err := range tc.errs {
				steps = append(steps, Named(fmt.Sprint("step ", i), returning(err)))
			}
			h := newHarness(t, interceptor.Funcs{}, steps...)
			require.Equal(t, tc.want, h.pass(t).RequeueAfter, tc.reason)
		})
	}
}

// TestLowPriority proves which passes have a low priority. Passes that events have triggered run before them.
func TestLowPriority(t *testing.T) {
	poll, boom := LowPriority(Success("", 10*time.Minute, "")), errors.New("boom")
	tests := map[string]struct {
		reason string
		errs   []error // one error for each step
		low    bool
	}{
		"Alone":                {reason: "nothing else asks for the pass", errs: []error{poll}, low: true},
		"OfAWait":              {reason: "a poll that was put off is a poll", errs: []error{LowPriority(KeepConditions(Wait("Quota", time.Second, "")))}, low: true},
		"Inside":               {reason: "the order of the wrappers does not count", errs: []error{KeepConditions(LowPriority(Wait("Quota", time.Second, "")))}, low: true},
		"BesideASuccess":       {reason: "that asks for nothing", errs: []error{nil, poll, Success("Done", 0, "")}, low: true},
		"BesideALaterDelay":    {reason: "that is asked for again by then", errs: []error{Wait("Slow", time.Hour, ""), poll}, low: true},
		"BesideTheSameDelay":   {reason: "it may be urgent", errs: []error{LowPriority(Wait("A", time.Minute, "")), Wait("B", time.Minute, "")}},
		"BesideAnEarlierDelay": {reason: "it is not a poll", errs: []error{poll, Wait("Slow", time.Second, "")}},
		"BesideAFailure":       {reason: "it is not a poll", errs: []error{poll, boom}},
		"OfAFailure":           {reason: "a retry keeps its priority", errs: []error{LowPriority(boom)}},
		"Joined":               {reason: "another part may be urgent", errs: []error{errors.Join(poll, Wait("Slow", time.Hour, ""))}},
		"AroundJoined":         {reason: "it holds for all", errs: []error{LowPriority(errors.Join(Success("", time.Minute, ""), Wait("Slow", time.Hour, "")))}, low: true},
		"WithoutADelay":        {reason: "an event triggers the next pass", errs: []error{LowPriority(Success("", 0, ""))}},
		"Without":              {reason: "nobody has asked for it", errs: []error{Success("", time.Minute, "")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var steps []NamedStep[*budget]
			for i, err := range tc.errs {
				steps = append(steps, Named(fmt.Sprint("step ", i), returning(err)))
			}
			result := newHarness(t, interceptor.Funcs{}, steps...).pass(t)
			if !tc.low {
				require.Nil(t, result.Priority, tc.reason)
				return
			}
			require.NotNil(t, result.Priority, tc.reason)
			require.Equal(t, handler.LowPriority, *result.Priority)
		})
	}
}

// TestLowPriorityInTheQueue: a person changes an object while a thousand polls are due. controller-runtime adds an object again with
// the priority that the result has.
func TestLowPriorityInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := priorityqueue.New[int]("test")
		poll := newHarness(t, interceptor.Funcs{}, Named("one", returning(LowPriority(Success("", 10*time.Minute, ""))))).pass(t)
		for object := range 1000 {
			queue.AddWithOpts(priorityqueue.AddOpts{After: poll.RequeueAfter, Priority: poll.Priority}, object)
		}
		time.Sleep(time.Hour)
		queue.AddWithOpts(priorityqueue.AddOpts{}, 700) // the event handler adds an object like this
		synctest.Wait()
		object, _, _ := queue.GetWithPriority()
		require.Equal(t, 700, object)
		queue.ShutDown()
	})
}

func TestNilErrors(t *testing.T) {
	require.NoError(t, WithReason("Wrong", nil))
	require.NoError(t, WithReason("X", nil))
	require.NoError(t, Stalled("X", nil))
	require.NoError(t, LowPriority(nil))
}

func TestSuccess(t *testing.T) {
	provisioned := Success("ProvisionSucceeded", 10*time.Minute, "The user is there.")
	tests := map[string]struct {
		reason string
		steps  []NamedStep[*budget]
		want   []condition
		again  bool
	}{
		"Alone": {
			reason: "the condition of the step and Ready have its reason and message",
			steps:  []NamedStep[*budget]{Named("one", returning(provisioned)).Reporting("Provisioned")},
			want: []condition{
				{"Provisioned", "True", "ProvisionSucceeded", "The user is there."}, {"Ready", "True", "ProvisionSucceeded", "The user is there."},
			},
			again: true,
		},
		"WithoutAReason": {
			reason: "only the condition of the step has its message",
			steps: []NamedStep[*budget]{
				Named("one", returning(SuccessUntil("", 10*time.Minute, "every night"))).Reporting("Backups"), Named("two", returning(nil)),
			},
			want:  []condition{{"Backups", "True", "Succeeded", "every night"}, {"Ready", "True", "Succeeded", ""}},
			again: true,
		},
		"ReasonOfAPlainSuccess": {
			reason: "its message appears in Ready, although the reason is that of a step without a Success",
			steps:  []NamedStep[*budget]{Named("one", returning(Success("Succeeded", 10*time.Minute, "The user is there.")))},
			want:   []condition{{"Ready", "True", "Succeeded", "The user is there."}},
			again:  true,
		},
		"TwoSuccesses": {
			reason: "Ready shows the last one",
			steps: []NamedStep[*budget]{
				Named("one", returning(provisioned)), Named("two", returning(Success("Succeeded", 0, "The grants are there."))),
			},
			want:  []condition{{"Ready", "True", "Succeeded", "The grants are there."}},
			again: true,
		},
		"BesideAPlainSuccess": {
			reason: "a step that returns nil has no reason and message to show",
			steps:  []NamedStep[*budget]{Named("one", returning(provisioned)), Named("two", returning(nil))},
			want:   []condition{{"Ready", "True", "ProvisionSucceeded", "The user is there."}},
			again:  true,
		},
		"BesideAWait": {
			reason: "Ready shows what is not finished",
			steps:  []NamedStep[*budget]{Named("one", returning(provisioned)), Named("two", returning(Wait("Slow", 0, "slow")))},
			want:   []condition{{"Ready", "False", "Slow", "slow"}, {"Reconciling", "True", "Slow", "slow"}},
			again:  true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, tc.steps...)
			result := h.pass(t)
			require.Equal(t, tc.want, conditionsOf(h.status(t)), tc.reason)
			require.Equal(t, tc.again, result.RequeueAfter >= 10*time.Minute && result.RequeueAfter <= 11*time.Minute, "%v", result)
		})
	}
}

func TestKeepConditions(t *testing.T) {
	var returned error
	h := newHarness(t, interceptor.Funcs{}, Named("one", stepFunc[*budget](func(context.Context, client.Client, *budget) error { return returned })))
	returned = Wait("ByOther", 0, "another operator works on it")
	h.pass(t)
	before := h.status(t)
	for _, err := range []error{KeepConditions(nil), KeepConditions(Wait("Mine", 0, "mine")), KeepConditions(errDatabaseDown)} {
		returned = err
		result := h.pass(t)
		require.Equal(t, before, h.status(t), "the conditions stay")
		require.Equal(t, err.Error() == errDatabaseDown.Error(), result != ctrl.Result{}, "an error is retried: %v", result)
	}
}

func TestStalledWithoutReason(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(Stalled("", errors.New("x")))))
	h.pass(t)
	require.Equal(t, condition{"Ready", "False", "Invalid", "x"}, conditionsOf(h.status(t))[0])
}
