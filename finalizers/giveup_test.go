package finalizers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/events"

	"github.com/opblocks/opblocks/finalizers"
)

const event = "Warning CleanupGivenUp gave up example.com/account after 1h0m0s, what it had to remove may still be there: " +
	"the database does not answer"

func TestGiveUpAfter(t *testing.T) {
	cases := map[string]struct {
		reason  string
		now     time.Time
		cleanup error
		fails   bool // the cleanup fails again
		event   string
	}{
		"InTime": {
			reason: "A second before the limit the cleanup is retried.",
			now:    noon.Add(time.Hour - time.Second), cleanup: errDown, fails: true,
		},
		"Over": {
			reason: "At the limit the finalizer is removed, and an event names the error.",
			now:    noon.Add(time.Hour), cleanup: errDown, event: event,
		},
		"FirstAttemptAfterAnOutage": {
			reason: "The time also passes while the operator is down.",
			now:    noon.AddDate(0, 0, 3), cleanup: errDown, event: event,
		},
		"SucceedsLate": {
			reason: "The cleanup runs once more after the limit, and may succeed.",
			now:    noon.Add(2 * time.Hour),
		},
		"ClockBehind": {
			reason: "With a clock behind the API server's, the limit is reached later, not earlier.",
			now:    noon.Add(-time.Minute), cleanup: errDown, fails: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(deletedUser(account, theirs))
			recorder := events.NewFakeRecorder(1)
			deleted, err := finalizers.Finalize(t.Context(), c, read(t, c), finalizers.Finalizer{
				Name: account, Cleanup: func(context.Context) error { return tc.cleanup },
				GiveUpAfter: time.Hour, Recorder: recorder, Now: clock(tc.now),
			})
			require.True(t, deleted)
			left := []string{theirs}
			if tc.fails {
				require.ErrorIs(t, err, errDown, tc.reason)
				left = []string{account, theirs}
			} else {
				require.NoError(t, err, tc.reason)
			}
			require.Equal(t, left, read(t, c).Finalizers)
			require.Equal(t, tc.event, nextEvent(recorder))
		})
	}
}

func TestGiveUpAfterShutdown(t *testing.T) {
	c := newFake(deletedUser(account))
	ctx, stop := context.WithCancel(t.Context())
	deleted, err := finalizers.Finalize(ctx, c, read(t, c), finalizers.Finalizer{
		Name: account, Cleanup: func(ctx context.Context) error { stop(); return ctx.Err() },
		GiveUpAfter: time.Hour, Now: clock(noon.Add(2 * time.Hour)),
	})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, deleted)
	require.Equal(t, []string{account}, read(t, c).Finalizers)
}

// If a cleanup ends because the deadline of its context has passed, it has failed.
func TestGiveUpAfterContextDeadline(t *testing.T) {
	c := newFake(deletedUser(account, theirs))
	ctx, stop := context.WithDeadline(t.Context(), noon)
	defer stop()
	deleted, err := finalizers.Finalize(ctx, c, read(t, c), finalizers.Finalizer{
		Name: account, Cleanup: func(ctx context.Context) error { return ctx.Err() },
		GiveUpAfter: time.Hour, Now: clock(noon.Add(2 * time.Hour)),
	})
	require.NoError(t, err)
	require.True(t, deleted)
	require.Equal(t, []string{theirs}, read(t, c).Finalizers)
}

func TestGiveUpAfterConflictSendsNoEvent(t *testing.T) {
	c := newFake(deletedUser(account, theirs))
	stale := read(t, c)
	_, err := finalizers.Remove(t.Context(), c, read(t, c), theirs)
	require.NoError(t, err)
	recorder := events.NewFakeRecorder(1)
	deleted, err := finalizers.Finalize(t.Context(), c, stale, finalizers.Finalizer{
		Name: account, Cleanup: func(context.Context) error { return errDown },
		GiveUpAfter: time.Nanosecond, Recorder: recorder, Now: clock(noon.Add(time.Second)),
	})
	require.Error(t, err, "a conflict")
	require.True(t, deleted)
	require.Empty(t, nextEvent(recorder))
}

func TestGiveUpAfterLongError(t *testing.T) {
	c := newFake(deletedUser(account))
	recorder := events.NewFakeRecorder(1)
	_, err := finalizers.Finalize(t.Context(), c, read(t, c), finalizers.Finalizer{
		Name: account, Cleanup: func(context.Context) error { return errors.New(strings.Repeat("ß", 1000)) },
		GiveUpAfter: time.Nanosecond, Recorder: recorder, Now: clock(noon.Add(time.Second)),
	})
	require.NoError(t, err)
	note := strings.TrimPrefix(nextEvent(recorder), "Warning CleanupGivenUp ")
	require.LessOrEqual(t, len(note), 1024, "the API server refuses a longer note")
	require.Greater(t, len(note), 1020)
	require.True(t, utf8.ValidString(note))
	require.True(t, strings.HasSuffix(note, "ß…"))
}

// A wait without a delay, or with a long one, is shortened so that it ends at the limit.
func TestGiveUpAfterShortensWaits(t *testing.T) {
	cases := map[string]struct {
		reason      string
		failure     error
		after, want time.Duration
	}{
		"WithoutDelay": {reason: "The event that the cleanup waits for may never come.", after: 0, want: 20 * time.Minute},
		"Long":         {reason: "The last attempt is at the time to give up.", after: time.Hour, want: 20 * time.Minute},
		"Short":        {reason: "A shorter wait is kept.", after: time.Minute, want: time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(deletedUser(account))
			failure := &waitError{after: tc.after}
			_, err := finalizers.Finalize(t.Context(), c, read(t, c), finalizers.Finalizer{
				Name: account, Cleanup: func(context.Context) error { return failure },
				GiveUpAfter: time.Hour, Now: clock(noon.Add(40 * time.Minute)),
			})
			require.ErrorIs(t, err, failure)
			require.EqualError(t, err, failure.Error())
			wait, ok := errors.AsType[interface {
				error
				Waiting() (string, time.Duration)
			}](err)
			require.True(t, ok)
			reason, after := wait.Waiting()
			require.Equal(t, "Draining", reason)
			require.Equal(t, tc.want, after, tc.reason)
		})
	}
}

func TestGiveUpAfterJoinedErrors(t *testing.T) {
	c := newFake(deletedUser(account))
	failure := errors.Join(&waitError{}, errDown)
	_, err := finalizers.Finalize(t.Context(), c, read(t, c), finalizers.Finalizer{
		Name: account, Cleanup: func(context.Context) error { return failure },
		GiveUpAfter: time.Hour, Now: clock(noon),
	})
	require.Same(t, failure, err, "one of them is not a wait, and must not be hidden by one")
}

func TestGiveUpAfterOrdered(t *testing.T) {
	c := newFake(deletedUser(account, database, theirs))
	recorder := events.NewFakeRecorder(2)
	var ran []string
	list := newOrdered(&ran, map[string]error{account: errDown})
	for i := range list {
		list[i].GiveUpAfter, list[i].Recorder, list[i].Now = time.Hour, recorder, clock(noon.Add(time.Hour))
	}
	deleted, err := finalizers.Finalize(t.Context(), c, read(t, c), list...)
	require.NoError(t, err)
	require.True(t, deleted)
	require.Equal(t, []string{account, database}, ran)
	require.Equal(t, []string{theirs}, read(t, c).Finalizers)
	require.Equal(t, event, nextEvent(recorder))
	require.Empty(t, nextEvent(recorder), "the cleanup that finished sends no event")
}
