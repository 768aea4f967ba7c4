package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

const ourMark = "DatabaseUser sample-uid"

// TestPendingIsExamined checks that an account that the status records, and that was perhaps never created, is changed and dropped
// only if the server shows that it was created for the DatabaseUser.
func TestPendingIsExamined(t *testing.T) {
	recorded := userv1alpha1.DatabaseUserStatus{User: "alice", Hosts: []string{"%"}, Target: "Shop"}
	pending, confirmed := recorded, recorded
	pending.PendingHosts = []string{"%"}
	confirmed.PasswordVersion = "secret-uid/1"
	tests := map[string]struct {
		reason   string
		status   userv1alpha1.DatabaseUserStatus
		password accounts.Password // the password of the account
		mark     accounts.Mark
		ours     bool
	}{
		"Theirs":              {"the server was read-only, and somebody else created it later", pending, "theirs", "", false},
		"TheirsSamePassword":  {"an administrator has used the password of the Secret", pending, "swordfish", "", false},
		"MarkOfAnother":       {"a DatabaseUser of another cluster has it", pending, "swordfish", "DatabaseUser other-uid", false},
		"Marked":              {"the process ended right after CREATE USER", pending, "swordfish", ourMark, true},
		"MarkedOtherPassword": {"and the Secret was changed since", pending, "an earlier one", ourMark, true},
		"Confirmed":           {"the version before reported success", confirmed, "by hand", "", true},
		"ConfirmedMarked":     {"the process ended before the mark was taken off", confirmed, "swordfish", ourMark, true},
		"Unconfirmed":         {"the version before ended right after CREATE USER", recorded, "swordfish", "", true},
		"UnconfirmedTheirs":   {"the version before never created it", recorded, "theirs", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start := func() *harness {
				u := sample()
				u.Finalizers, u.Status = []string{controller.Finalizer}, tc.status
				h := newHarness(t, u, secret("swordfish"))
				require.NoError(t, h.database.Create(t.Context(), alice, tc.password, accounts.Settings{Mark: tc.mark}))
				h.database.Calls()
				return h
			}
			h := start()
			ready, calls := h.reconcile(t)
			if tc.ours {
				assert.Equal(t, "ProvisionSucceeded", ready.Reason, "%s: %s", tc.reason, ready.Message)
				assert.Equal(t, "swordfish", h.database.Password(alice))
				state, err := h.database.Lookup(t.Context(), alice)
				require.NoError(t, err)
				assert.Empty(t, state.Mark, "with a mark nobody could log in")
			} else {
				assert.Equal(t, "AccountExists", ready.Reason, tc.reason)
				assert.Contains(t, ready.Message, "set spec.adopt to take it over", "the remedy")
				assert.Equal(t, []string{"Lookup 'alice'@'%'"}, calls, "nothing is changed: %s", tc.reason)
				h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.Adopt = true })
				ready, _ = h.reconcile(t)
				assert.Equal(t, "ProvisionSucceeded", ready.Reason, "the remedy works: %s", ready.Message)
			}

			h = start()
			require.NoError(t, h.Delete(t.Context(), sample()))
			h.reconcile(t)
			assert.Equal(t, tc.ours, len(h.database.Accounts()) == 0, "dropped by the deletion: %s", tc.reason)
			assert.Error(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), sample()), "the object is gone")
		})
	}
}

// TestRefusedThenRestarted checks that an account is not ours that the server refused to create, and that somebody else creates
// while the operator is down.
func TestRefusedThenRestarted(t *testing.T) {
	start := func() *harness {
		h := newHarness(t, sample(), secret("swordfish"))
		h.database.Fail = func(method string) error {
			if method == "Create" {
				return &accounts.StatementError{Number: 1290, State: "HY000", Message: "The MariaDB server is running with the --read-only option"}
			}
			return nil
		}
		ready, _ := h.reconcile(t)
		require.Equal(t, "ProvisionFailed", ready.Reason)
		h.database.Fail = nil
		require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
		h.database.Calls()
		h.start(h.database)
		return h
	}
	h := start()
	ready, _ := h.reconcile(t)
	assert.Equal(t, "AccountExists", ready.Reason, ready.Message)
	assert.Equal(t, "theirs", h.database.Password(alice))

	h = start()
	require.NoError(t, h.Delete(t.Context(), sample()))
	_, calls := h.reconcile(t)
	assert.Equal(t, []string{"Lookup 'alice'@'%'"}, calls)
	assert.Equal(t, "theirs", h.database.Password(alice), "it is not dropped")
}

// TestDroppedByOthers checks that a confirmed account which somebody has dropped is pending until it is created again.
func TestDroppedByOthers(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	require.NoError(t, h.database.Drop(t.Context(), alice))
	h.database.Fail = func(method string) error {
		if method == "Create" {
			return &accounts.UnreachableError{Address: "db:3306", Reason: "the connection broke"}
		}
		return nil
	}
	h.start(h.database)
	h.reconcile(t)
	h.database.Fail = nil
	require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
	h.start(h.database)
	ready, _ := h.reconcile(t)
	assert.Equal(t, "AccountExists", ready.Reason, ready.Message)
	assert.Equal(t, "theirs", h.database.Password(alice))
}

// TestPendingHostBesideOthers checks that a host that cannot be added leaves the account of the other host ours.
func TestPendingHostBesideOthers(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	h.database.Fail = func(method string) error {
		if method == "Create" {
			return &accounts.StatementError{Number: 1290, State: "HY000", Message: "read-only"}
		}
		return nil
	}
	h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.Hosts = []string{"%", "127.0.0.1"} })
	h.reconcile(t)
	h.database.Fail = nil
	local := accounts.Account{User: "alice", Host: "127.0.0.1"}
	require.NoError(t, h.database.Create(t.Context(), local, "theirs", accounts.Settings{}))
	h.start(h.database)
	ready, _ := h.reconcile(t)
	assert.Equal(t, "AccountExists", ready.Reason)
	assert.Contains(t, ready.Message, "'alice'@'127.0.0.1'")
	require.NoError(t, h.Delete(t.Context(), sample()))
	h.reconcile(t)
	assert.Equal(t, []string{"'alice'@'127.0.0.1'"}, h.database.Accounts(), "ours is dropped, and theirs is not")
}
