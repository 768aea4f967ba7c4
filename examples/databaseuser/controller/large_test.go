//go:build !race

// Many grants and long circles are computed by one pass, so the race detector finds nothing, and would take ten times as long.

package controller_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// TestForgedGrants checks that only what an account has is revoked, however many grants the status names.
func TestForgedGrants(t *testing.T) {
	u := sample()
	u.Spec.Hosts = manyHosts()
	h := newHarness(t, u, secret("swordfish"))
	h.reconcile(t)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	for i := range 2_000 {
		u.Status.Grants = append(u.Status.Grants, userv1alpha1.AppliedGrant{Database: fmt.Sprint("forged", i), Privileges: []string{"SELECT"}})
	}
	require.NoError(t, h.Status().Update(t.Context(), u))
	h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.Grants = nil })
	ready, calls := h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
	assert.Equal(t, 32, count(calls, "Revoke "), "the grant that each account has had")
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	assert.Empty(t, u.Status.Grants)
}

// TestLongCircles exchanges the names of many DatabaseUsers, each for the name of the next one.
func TestLongCircles(t *testing.T) {
	for size, resolved := range map[int]bool{controller.MaxCircle: true, controller.MaxCircle + 1: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var pairs [][2]string
			var names []string
			after := map[string]string{}
			for i := range size {
				names = append(names, fmt.Sprintf("u%02d", i))
				pairs = append(pairs, [2]string{names[i], "user-" + names[i]})
				after[names[i]] = fmt.Sprintf("user-u%02d", (i+1)%size)
			}
			h := newHarness(t, rivals(false, pairs...)...)
			for _, name := range names {
				require.Equal(t, "ProvisionSucceeded", h.reconcileNamed(t, name).Reason)
			}
			rename(t, h, after)
			for range 3 {
				for _, name := range slices.Backward(names) {
					h.reconcileNamed(t, name)
				}
			}
			for i, name := range names {
				ready := h.reconcileNamed(t, name)
				if resolved {
					assert.Equal(t, "ProvisionSucceeded", ready.Reason, "%s: %s", name, ready.Message)
					assert.Equal(t, name, h.database.Password(accounts.Account{User: after[name], Host: "%"}))
					continue
				}
				assert.Equal(t, "AccountClaimed", ready.Reason, name)
				assert.Equal(t, fmt.Sprintf("DatabaseUser default/%s has the better claim to the user name; more than 16 DatabaseUsers wait for each other: "+
					"if they do so in a circle, give one of them a name that nobody has", names[(i+1)%size]), ready.Message)
				assert.Equal(t, name, h.database.Password(accounts.Account{User: "user-" + name, Host: "%"}), "it keeps its account")
			}
		})
	}
}
