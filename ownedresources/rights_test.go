package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// An operator that has permissions in some namespaces only cannot list a kind in all namespaces.
func TestFinalizeWithRightsInSomeNamespaces(t *testing.T) {
	env := newServerEnv(t)
	cp := controlPlane(t)
	other := controlplane.Namespace(t, cp)
	for _, namespace := range []string{env.Namespace, other} {
		named := metav1.ObjectMeta{Namespace: namespace, Name: "operator"}
		require.NoError(t, env.Other.Create(t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", "example.com"}, Resources: []string{"configmaps", "shops", "shops/finalizers"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete", "update"},
		}}}))
		require.NoError(t, env.Other.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: named, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "operator"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "operator-" + env.Namespace}},
		}))
	}
	limited, err := client.New(cp.ConfigFor("operator-"+env.Namespace), client.Options{})
	require.NoError(t, err)
	require.True(t, apierrors.IsForbidden(limited.List(t.Context(), &corev1.ConfigMapList{})))
	set := Ensure(Build(func(*Shop) *corev1.ConfigMap { return namedConfigMap(other, "data") }).Anywhere())
	set.set.Cache, set.set.APIReader = emptyCache{}, limited
	owner := env.finalizing(t, set, false)
	require.Eventually(t, func() bool { // the API server sees new roles a moment later
		err := set.Reconcile(t.Context(), limited, owner)
		require.True(t, err == nil || apierrors.IsForbidden(err), err)
		return err == nil
	}, controlplane.Patience, 20*time.Millisecond)
	require.NoError(t, env.Other.Delete(t.Context(), owner))
	env.Live(t, owner)

	var wait *owned.WaitingError
	require.ErrorAs(t, set.Finalize(t.Context(), limited, owner), &wait)
	require.False(t, env.Exists(t, namedConfigMap(other, "data")))
	require.NoError(t, set.Finalize(t.Context(), limited, owner))
}
