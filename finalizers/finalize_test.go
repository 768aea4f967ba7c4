package finalizers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
)

func TestFinalize(t *testing.T) {
	type want struct {
		Deleted  bool
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
			reason: "The cleanup does not run for an object that is not being deleted.",
			stored: []string{account, theirs},
			live:   true,
			want:   want{Stored: []string{account, theirs}},
		},
		"Finished": {
			reason: "After the cleanup this finalizer is removed, and no other.",
			stored: []string{account, theirs},
			want:   want{Deleted: true, Cleanups: 1, Requests: 1, Stored: []string{theirs}},
		},
		"Absent": {
			reason: "The object waits for a finalizer of another controller; this one is done.",
			stored: []string{theirs},
			want:   want{Deleted: true, Stored: []string{theirs}},
		},
		"Failed": {
			reason:  "If the cleanup fails, the finalizer stays, and its error is returned unchanged.",
			stored:  []string{account, theirs},
			cleanup: errDown,
			want:    want{Deleted: true, Err: errDown, Cleanups: 1, Stored: []string{account, theirs}},
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
			got.Deleted, got.Err = finalizers.Finalize(t.Context(), c, obj, finalizers.Finalizer{Name: account, Cleanup: func(context.Context) error {
				got.Cleanups++
				return tc.cleanup
			}})
			got.Requests, got.Stored = c.requests, read(t, c).Finalizers
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" { //nolint:errorlint // the error is returned unchanged
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			require.Equal(t, got.Stored, obj.Finalizers, "the object in memory equals the stored one")
		})
	}
}

func TestFinalizeLastFinalizer(t *testing.T) {
	c := newFake(deletedUser(account))
	obj := read(t, c)
	deleted, err := finalizers.Finalize(t.Context(), c, obj, finalizers.Finalizer{Name: account, Cleanup: succeed})
	require.NoError(t, err)
	require.True(t, deleted)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)), "the object is gone")
}

// A cache may still show an object that is gone. The cleanup then runs again, and returns no error.
func TestFinalizeStaleCache(t *testing.T) {
	c := newFake(deletedUser(account))
	obj, again := read(t, c), read(t, c)
	for _, o := range []client.Object{obj, again} {
		deleted, err := finalizers.Finalize(t.Context(), c, o, finalizers.Finalizer{Name: account, Cleanup: succeed})
		require.NoError(t, err)
		require.True(t, deleted)
	}
}

func TestFinalizeConflict(t *testing.T) {
	c := newFake(deletedUser(account, database, theirs))
	stale := read(t, c)
	_, err := finalizers.Remove(t.Context(), c, read(t, c), database)
	require.NoError(t, err)
	deleted, err := finalizers.Finalize(t.Context(), c, stale, finalizers.Finalizer{Name: account, Cleanup: succeed})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.True(t, deleted)
	require.Equal(t, []string{account, theirs}, read(t, c).Finalizers, "a finalizer that was removed in between does not come back")
}

func TestFinalizeInvalid(t *testing.T) {
	c := newFake(user(account))
	_, err := finalizers.Finalize(t.Context(), c, read(t, c), finalizers.Finalizer{Name: "account", Cleanup: succeed})
	require.ErrorContains(t, err, `invalid finalizer "account"`)
	_, err = finalizers.Finalize(t.Context(), c, read(t, c), finalizers.Finalizer{Name: account, Cleanup: nil})
	require.EqualError(t, err, `finalizer "example.com/account" has no cleanup: use Remove to remove it without one`)
	require.Zero(t, c.requests)
}

func TestFinalizeReturnsWaits(t *testing.T) {
	c := newFake(deletedUser(account))
	cleanup := func(context.Context) error { return &waitError{after: time.Minute} }
	deleted, err := finalizers.Finalize(t.Context(), c, read(t, c), finalizers.Finalizer{Name: account, Cleanup: cleanup})
	require.True(t, deleted)
	var wait interface {
		error
		Waiting() (string, time.Duration)
	}
	require.ErrorAs(t, err, &wait)
	reason, after := wait.Waiting()
	require.Equal(t, "Draining", reason)
	require.Equal(t, time.Minute, after)
}
