package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// manyHosts returns as many hosts as the schema allows.
func manyHosts() (hosts []string) {
	for i := range 32 {
		hosts = append(hosts, fmt.Sprintf("10.0.0.%d", i))
	}
	return hosts
}

// manyGrants returns as many grants as the schema allows, in databases whose names begin with a prefix.
func manyGrants(prefix string) (grants []userv1alpha1.Grant) {
	for i := range 64 {
		grants = append(grants, userv1alpha1.Grant{Database: fmt.Sprint(prefix, i), Privileges: []userv1alpha1.Privilege{"SELECT"}})
	}
	return grants
}

// TestErrorsAmongGrants checks that the first error that is not of one statement ends a pass over many accounts and grants: each
// further statement would cost a request, which meets the same error.
func TestErrorsAmongGrants(t *testing.T) {
	resource := schema.GroupResource{Group: "mygroup.handsomeguy.cn", Resource: "databaseusers"}
	refusal := &accounts.StatementError{Number: 1044, State: "42000", Message: "Access denied"}
	tests := map[string]struct {
		reason   string
		request  error // the API server's answer to each write of the status
		database error // the database's answer to each grant
		requests int   // the largest number of writes of the status
		grants   int
	}{
		"Conflict":    {"somebody has changed the object", apierrors.NewConflict(resource, "sample", nil), nil, 1, 0},
		"Gone":        {"somebody has removed the finalizer", apierrors.NewNotFound(resource, "sample"), nil, 2, 0},
		"Forbidden":   {"the role of the operator was changed", apierrors.NewForbidden(resource, "sample", nil), nil, 2, 0},
		"Unreachable": {"each would wait for a timeout", nil, &accounts.UnreachableError{Reason: "no answer"}, 2, 1},
		"Dropped":     {"somebody has dropped the account", nil, accounts.ErrNotFound, 2, 1},
		"Refused":     {"another grant may be allowed, and that the work goes on is written once", nil, refusal, 3, 32 * 64},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := sample()
			u.Spec.Hosts = manyHosts()
			h := newHarness(t, u, secret("swordfish"))
			ready, _ := h.reconcile(t)
			require.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)

			requests := 0
			h.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, resource string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					requests++
					if tc.request != nil {
						return tc.request
					}
					return c.SubResource(resource).Patch(ctx, obj, patch, opts...)
				},
			})
			h.database.Fail = func(method string) error {
				if method == "Grant" {
					return tc.database
				}
				return nil
			}
			h.start(h.database)
			h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.Grants = manyGrants("db") })
			_ = h.passes(t, client.ObjectKeyFromObject(u)) // the error is the test's
			assert.LessOrEqual(t, requests, tc.requests, "%s: writes of the status", tc.reason)
			assert.Equal(t, tc.grants, count(h.database.Calls(), "Grant "), tc.reason)
		})
	}
}

// What was refused in one pass is not sent again by the next one, and the last one reports all of it.
func TestRefusalsOfSeveralTurns(t *testing.T) {
	u := sample()
	u.Spec.Hosts = manyHosts()[:2]
	u.Spec.Grants = manyGrants("db")[:20]
	h := newHarness(t, u, secret("swordfish"))
	h.turn = 10
	h.start(h.database)
	h.database.Fail = func(method string) error {
		if method == "Grant" {
			return &accounts.StatementError{Number: 1044, State: "42000", Message: "Access denied"}
		}
		return nil
	}
	ready, calls := h.reconcile(t)
	assert.Equal(t, 40, count(calls, "Grant "))
	assert.Equal(t, 40, strings.Count(ready.Message, "Access denied"), ready.Message)

	h.database.Fail = nil
	h.clock.SetTime(h.clock.Now().Add(time.Hour))
	ready, calls = h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
	assert.Equal(t, 40, count(calls, "Grant "))
}

func count(calls []string, prefix string) (n int) {
	for _, call := range calls {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

// TestRefusedGrantsAreForgotten checks that grants which the server has refused are not recorded any more when the spec does not
// list them: else whoever changes the spec often could make the status, and the work of each pass, as long as they like.
func TestRefusedGrantsAreForgotten(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	h.database.Fail = func(method string) error {
		if method == "Grant" || method == "Revoke" {
			return &accounts.StatementError{Number: 1044, State: "42000", Message: "Access denied"}
		}
		return nil
	}
	for i := range 5 {
		h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.Grants = manyGrants(fmt.Sprint("db-", i, "-")) })
		ready, calls := h.reconcile(t)
		assert.Equal(t, "ProvisionFailed", ready.Reason)
		assert.Equal(t, 1, count(calls, "Revoke "), "what the account has")
		var u userv1alpha1.DatabaseUser
		require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &u))
		assert.Len(t, u.Status.Grants, 65)
		assert.True(t, slices.ContainsFunc(u.Status.Grants, func(g userv1alpha1.AppliedGrant) bool { return g.Database == "shop" }), "it is still to be revoked")
	}
}

// A pass that goes on with the account of another one sets its password once, and keeps what the conditions say of another spec from being shown.
func TestPasswordIsSetOnce(t *testing.T) {
	u := sample()
	u.Spec.Grants = manyGrants("db")[:30]
	h := newHarness(t, u, secret("swordfish"))
	h.reconcile(t)
	h.turn = 10
	h.start(h.database)
	require.NoError(t, h.Update(t.Context(), secret("marlin")))
	h.change(t, func(u *userv1alpha1.DatabaseUser) { u.Spec.Grants = manyGrants("shop")[:30] })
	_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(u)})
	require.NoError(t, err)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	ready, _ := controller.Conditions.Get(u.Status.Conditions, conditions.Ready)
	assert.Equal(t, "Yielded", ready.Reason, "the spec is another one")
	now, calls := h.reconcile(t)
	assert.Equal(t, "ProvisionSucceeded", now.Reason, now.Message)
	assert.Equal(t, 1, count(calls, "SetPassword "))
	assert.Equal(t, 30, count(calls, "Grant "))
	assert.Equal(t, 30, count(calls, "Revoke "))
}
