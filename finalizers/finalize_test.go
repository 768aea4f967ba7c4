package finalizers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
)

var errDown = errors.New("the database does not answer")

func TestFinalize(t *testing.T) {
	type want struct {
		Outcome  finalizers.Outcome
		Err      error
		Cleanups int
		Requests int
		Stored   []string
	}
	cases := map[string]struct {
		reason  string
		stored  []string
		live    bool
		cleanup error
		want    want
	}{
		"NotDeleted": {
			reason: "nothing is cleaned up of an object that lives",
			stored: []string{account, theirs},
			live:   true,
			want:   want{Outcome: finalizers.NotDeleted, Stored: []string{account, theirs}},
		},
		"Finished": {
			reason: "cleaned up: our finalizer goes, and no other",
			stored: []string{account, theirs},
			want:   want{Outcome: finalizers.Finished, Cleanups: 1, Requests: 1, Stored: []string{theirs}},
		},
		"Absent": {
			reason: "an object that waits for somebody else's finalizer has been cleaned up",
			stored: []string{theirs},
			want:   want{Outcome: finalizers.Absent, Stored: []string{theirs}},
		},
		"Failed": {
			reason:  "a cleanup that fails keeps the finalizer, and its error comes back as it is",
			stored:  []string{account, theirs},
			cleanup: errDown,
			want:    want{Outcome: finalizers.Pending, Err: errDown, Cleanups: 1, Stored: []string{account, theirs}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := deletedUser(tc.stored...)
			if tc.live {
				obj = user(tc.stored...)
			}
			c := newFake(obj)
			obj = read(t, c)
			got := want{}
			got.Outcome, got.Err = finalizers.Finalize(t.Context(), c, obj, account, func(context.Context) error {
				got.Cleanups++
				return tc.cleanup
			})
			got.Requests, got.Stored = c.requests, read(t, c).Finalizers
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" { //nolint:errorlint // as it is
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			require.Equal(t, got.Stored, obj.Finalizers, "in memory is what is stored")
		})
	}
}

func TestFinalizeTheLastOne(t *testing.T) {
	c := newFake(deletedUser(account))
	obj := read(t, c)
	outcome, err := finalizers.Finalize(t.Context(), c, obj, account, succeed)
	require.NoError(t, err)
	require.Equal(t, finalizers.Finished, outcome)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)), "the object is gone")
}

// A cache may still show an object that is gone: cleanup runs again, and that is no error.
func TestFinalizeWhatIsGone(t *testing.T) {
	c := newFake(deletedUser(account))
	obj, again := read(t, c), read(t, c)
	for _, o := range []client.Object{obj, again} {
		outcome, err := finalizers.Finalize(t.Context(), c, o, account, succeed)
		require.NoError(t, err)
		require.Equal(t, finalizers.Finished, outcome)
	}
}

func TestFinalizeLosesARace(t *testing.T) {
	c := newFake(deletedUser(account, database, theirs))
	stale := read(t, c)
	_, err := finalizers.Remove(t.Context(), c, read(t, c), database)
	require.NoError(t, err)
	outcome, err := finalizers.Finalize(t.Context(), c, stale, account, succeed)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Equal(t, finalizers.Pending, outcome)
	require.Equal(t, []string{account, theirs}, read(t, c).Finalizers, "what was removed meanwhile does not come back")
}

func TestFinalizeFindsMistakesWhileTheObjectLives(t *testing.T) {
	c := newFake(user(account))
	_, err := finalizers.Finalize(t.Context(), c, read(t, c), "account", succeed)
	require.ErrorIs(t, err, finalizers.ErrInvalidName)
	_, err = finalizers.Finalize(t.Context(), c, read(t, c), account, nil)
	require.EqualError(t, err, `finalizer "example.com/account" has no cleanup: use Remove to take it away without one`)
	require.Zero(t, c.requests)
}

func TestFinalizeKeepsWaitsRecognisable(t *testing.T) {
	c := newFake(deletedUser(account))
	cleanup := func(context.Context) error { return &waitError{after: time.Minute} }
	outcome, err := finalizers.Finalize(t.Context(), c, read(t, c), account, cleanup)
	require.Equal(t, finalizers.Pending, outcome)
	var wait interface {
		error
		Waiting() (string, time.Duration)
	}
	require.ErrorAs(t, err, &wait)
	reason, after := wait.Waiting()
	require.Equal(t, "Draining", reason)
	require.Equal(t, time.Minute, after)
}

func succeed(context.Context) error { return nil }

// waitError is a wait as any package may define it.
type waitError struct{ after time.Duration }

func (*waitError) Error() string                                   { return "connections are being drained" }
func (e *waitError) Waiting() (reason string, after time.Duration) { return "Draining", e.after }
