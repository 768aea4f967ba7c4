package finalizers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
)

func TestOrderedFinalize(t *testing.T) {
	type want struct {
		Deleted bool
		Err     error
		Ran     []string
		Stored  []string
	}
	cases := map[string]struct {
		reason   string
		stored   []string
		failures map[string]error
		want     want
	}{
		"LastFirst": {
			reason: "The last of the list is finalized first, whatever the order on the object is.",
			stored: []string{account, theirs, database},
			want:   want{Deleted: true, Ran: []string{account, database}, Stored: []string{theirs}},
		},
		"LastFails": {
			reason:   "If the last cleanup fails, the one before does not run: an account needs its database.",
			stored:   []string{database, account, theirs},
			failures: map[string]error{account: errDown},
			want:     want{Deleted: true, Err: errDown, Ran: []string{account}, Stored: []string{database, account, theirs}},
		},
		"FirstFails": {
			reason:   "The finalizer of a finished cleanup is removed, so the cleanup does not run again.",
			stored:   []string{database, account, theirs},
			failures: map[string]error{database: errDown},
			want:     want{Deleted: true, Err: errDown, Ran: []string{account, database}, Stored: []string{database, theirs}},
		},
		"Continued": {
			reason: "The next call continues where the last one stopped.",
			stored: []string{database, theirs},
			want:   want{Deleted: true, Ran: []string{database}, Stored: []string{theirs}},
		},
		"Absent": {
			reason: "All finalizers were removed before.",
			stored: []string{theirs},
			want:   want{Deleted: true, Stored: []string{theirs}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(deletedUser(tc.stored...))
			got := want{}
			got.Deleted, got.Err = finalizers.Finalize(t.Context(), c, read(t, c), newOrdered(&got.Ran, tc.failures)...)
			got.Stored = read(t, c).Finalizers
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" { //nolint:errorlint // the error is returned unchanged
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOrderedNotDeleted(t *testing.T) {
	c := newFake(user(account, database))
	var ran []string
	deleted, err := finalizers.Finalize(t.Context(), c, read(t, c), newOrdered(&ran, nil)...)
	require.NoError(t, err)
	require.False(t, deleted)
	require.Empty(t, ran)
	require.Zero(t, c.requests)
}

func TestOrderedInvalid(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   []finalizers.Finalizer
		says   string
	}{
		"Name":      {"The rules are those of Ensure.", []finalizers.Finalizer{{Name: "account", Cleanup: succeed}}, `invalid finalizer "account"`},
		"Twice":     {"The second cleanup would never run.", []finalizers.Finalizer{{Name: account, Cleanup: succeed}, {Name: account, Cleanup: succeed}}, `invalid finalizer "example.com/account": it is listed twice`},
		"NoCleanup": {"It would panic in the middle of a deletion.", []finalizers.Finalizer{{Name: account}}, `finalizer "example.com/account" has no cleanup: use Remove`},
		"Limit":     {"It would give up at once.", []finalizers.Finalizer{{Name: account, Cleanup: succeed, GiveUpAfter: -1}}, `finalizer "example.com/account" gives up after -1ns: give it a limit above zero, or 0 for none`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, obj := range []client.Object{user(theirs), deletedUser(theirs)} {
				c := newFake(obj)
				_, err := finalizers.Finalize(t.Context(), c, read(t, c), tc.list...)
				require.ErrorContains(t, err, tc.says, tc.reason)
				require.Zero(t, c.requests)
			}
		})
	}
}
