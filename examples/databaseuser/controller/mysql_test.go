package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// TestMySQLPlugin reconciles accounts of caching_sha2_password, MySQL's default: nobody can compute from what is stored whether
// a password is right, so that only changes of it show.
func TestMySQLPlugin(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.database.Plugin = "caching_sha2_password"
	ready, _ := h.reconcile(t)
	require.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
	resync := func() (calls []string) {
		h.clock.SetTime(h.clock.Now().Add(time.Hour))
		_, calls = h.reconcile(t)
		return calls
	}
	assert.Equal(t, []string{"Lookup 'alice'@'%'"}, resync(), "what is stored has not changed, so the password is not set again")

	require.NoError(t, h.database.SetPassword(t.Context(), alice, "by hand"))
	h.database.Calls()
	assert.Contains(t, resync(), "SetPassword 'alice'@'%'", "what is stored has changed")
	assert.Equal(t, "swordfish", h.database.Password(alice))
	assert.Equal(t, []string{"Lookup 'alice'@'%'"}, resync())

	require.NoError(t, h.Update(t.Context(), secret("marlin")))
	h.reconcile(t)
	assert.Equal(t, "marlin", h.database.Password(alice), "the Secret's version is recorded, which needs no plugin")
}

// TestMySQLPluginAfterCrash creates an account, and the process dies before this is recorded. The password is set
// again, because the Secret may have changed.
func TestMySQLPluginAfterCrash(t *testing.T) {
	recorded := sample()
	recorded.Status = userv1alpha1.DatabaseUserStatus{User: "alice", Hosts: []string{"%"}, PendingHosts: []string{"%"}, Target: "Shop"}
	h := newHarness(t, recorded, secret("swordfish"))
	h.database.Plugin = "caching_sha2_password"
	require.NoError(t, h.database.Create(t.Context(), alice, "an earlier one", accounts.Settings{Mark: "DatabaseUser sample-uid"}))
	ready, _ := h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
	assert.Equal(t, "swordfish", h.database.Password(alice))
}

// TestMySQLUserName has a name that MariaDB accepts, and that MySQL refuses for its length.
func TestMySQLUserName(t *testing.T) {
	long := sample()
	long.Spec.User = strings.Repeat("x", 33)
	h := newHarness(t, long, secret("swordfish"))
	h.database.Fail = func(method string) error {
		if method == "Create" {
			return &accounts.StatementError{Number: 1470, State: "HY000", Message: "String '" + long.Spec.User + "' is too long for user name (should be no longer than 32)"}
		}
		return nil
	}
	ready, _ := h.reconcile(t)
	assert.Equal(t, "ProvisionFailed", ready.Reason)
	assert.Contains(t, ready.Message, "(should be no longer than 32)", "the server's words say what to do")
	require.Empty(t, h.database.Accounts())

	h.database.Fail = nil
	h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.User = long.Spec.User[:32] })
	ready, calls := h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
	assert.NotContains(t, strings.Join(calls, " "), "Drop", "nothing was created by the long name")
}
