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
		Outcome finalizers.Outcome
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
			want:   want{Outcome: finalizers.Finished, Ran: []string{account, database}, Stored: []string{theirs}},
		},
		"LastFails": {
			reason:   "If the last cleanup fails, the one before does not run: an account needs its database.",
			stored:   []string{database, account, theirs},
			failures: map[string]error{account: errDown},
			want:     want{Outcome: finalizers.Pending, Err: errDown, Ran: []string{account}, Stored: []string{database, account, theirs}},
		},
		"FirstFails": {
			reason:   "The finalizer of a finished cleanup is removed, so the cleanup does not run again.",
			stored:   []string{database, account, theirs},
			failures: map[string]error{database: errDown},
			want:     want{Outcome: finalizers.Pending, Err: errDown, Ran: []string{account, database}, Stored: []string{database, theirs}},
		},
		"Continued": {
			reason: "The next call continues where the last one stopped.",
			stored: []string{database, theirs},
			want:   want{Outcome: finalizers.Finished, Ran: []string{database}, Stored: []string{theirs}},
		},
		"Absent": {
			reason: "All finalizers were removed before.",
			stored: []string{theirs},
			want:   want{Outcome: finalizers.Absent, Stored: []string{theirs}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newFake(deletedUser(tc.stored...))
			got := want{}
			got.Outcome, got.Err = newOrdered(&got.Ran, tc.failures).Finalize(t.Context(), c, read(t, c))
			got.Stored = read(t, c).Finalizers
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" { //nolint:errorlint // the error is returned unchanged
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOrderedEnsure(t *testing.T) {
	c := newFake(user(theirs))
	var ran []string
	obj := read(t, c)
	added, err := newOrdered(&ran, nil).Ensure(t.Context(), c, obj)
	require.NoError(t, err)
	require.True(t, added)
	require.Equal(t, []string{theirs, database, account}, obj.Finalizers)
	require.Equal(t, 1, c.requests)

	outcome, err := newOrdered(&ran, nil).Finalize(t.Context(), c, obj)
	require.NoError(t, err)
	require.Equal(t, finalizers.NotDeleted, outcome)
	require.Empty(t, ran)
}

func TestOrderedInvalid(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   finalizers.Ordered
		says   string
	}{
		"Name":      {"The rules are those of Ensure.", finalizers.Ordered{{"account", succeed}}, `invalid finalizer "account"`},
		"Twice":     {"The second cleanup would never run.", finalizers.Ordered{{account, succeed}, {account, succeed}}, `invalid finalizer "example.com/account": it is listed twice`},
		"NoCleanup": {"It would panic in the middle of a deletion.", finalizers.Ordered{{account, nil}}, `finalizer "example.com/account" has no cleanup`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, obj := range []client.Object{user(theirs), deletedUser(theirs)} {
				c := newFake(obj)
				added, err := tc.list.Ensure(t.Context(), c, read(t, c))
				require.ErrorContains(t, err, tc.says, tc.reason)
				require.False(t, added)
				_, err = tc.list.Finalize(t.Context(), c, read(t, c))
				require.ErrorContains(t, err, tc.says, tc.reason)
				require.Zero(t, c.requests)
			}
		})
	}
}
