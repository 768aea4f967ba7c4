package controller_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile"
)

// TestUpgrade reconciles what the previous version of the operator left: an account in the database, and its record in
// the status. It needs the fake client: the record names the UID and the resource version of the Secret.
func TestUpgrade(t *testing.T) {
	scheme := operatortest.NewScheme(clientgoscheme.AddToScheme, userv1alpha1.AddToScheme)
	h := newHarness(t, operatortest.TypedDump(t, "testdata/upgrade.yaml", scheme)...)
	require.NoError(t, h.database.Create(t.Context(), alice, "correct horse battery", accounts.Settings{}))
	require.NoError(t, h.database.Grant(t.Context(), alice, accounts.Grant{Database: "shop", Privileges: []string{"SELECT", "INSERT"}}))
	h.database.Calls()
	key := client.ObjectKey{Namespace: "upgrade", Name: "alice"}
	var before, after userv1alpha1.DatabaseUser
	require.NoError(t, h.Get(t.Context(), key, &before))

	operator := &controller.Operator{Database: h.database, Target: "shop", Resync: 10 * time.Minute, Clock: h.clock} // as the status has it
	reconciler := reconcile.New(h.Client, operator.Steps()...).WithConditions(controller.Conditions).WithClock(h.clock)
	_, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	require.NoError(t, h.Get(t.Context(), key, &after))
	assert.Equal(t, before.ResourceVersion, after.ResourceVersion, "an upgrade writes nothing to the API server")
	assert.Equal(t, []string{"Lookup 'alice'@'%'"}, h.database.Calls(), "and only reads from the database, once")
}
