package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// request requests a pass now.
func request(u *userv1alpha1.DatabaseUser) {
	metav1.SetMetaDataAnnotation(&u.ObjectMeta, reconcile.RequestedAnnotation, "now")
}

func TestRequestedResync(t *testing.T) {
	h := newHarness(t, sample(), secret("swordfish"))
	h.reconcile(t)
	require.NoError(t, h.database.SetPassword(t.Context(), alice, "by hand"))
	_, calls := h.reconcile(t)
	assert.Equal(t, []string{"SetPassword 'alice'@'%'"}, calls, "no resync is due")

	var u userv1alpha1.DatabaseUser
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &u))
	request(&u)
	require.NoError(t, h.Update(t.Context(), &u))
	h.reconcile(t)
	assert.Equal(t, "swordfish", h.database.Password(alice))
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &u))
	assert.Equal(t, "now", u.Status.LastHandledReconcileAt)
	_, calls = h.reconcile(t)
	assert.Empty(t, calls, "once for each request")
}
