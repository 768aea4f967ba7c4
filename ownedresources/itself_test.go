package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// If a child were its own owner, the set would overwrite the owner, and delete it when the child is not built any
// more.
func TestChildThatIsItsOwnOwner(t *testing.T) {
	for name, options := range map[string][]childOption{"Adopt": {withAdopt()}, "Anywhere": {withAdopt(), withAnywhere()}, "AdoptRestored": {withAdoptRestored()}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			owner := namedConfigMap(env.Namespace, "web")
			owner.Data = map[string]string{"motto": "of the user"}
			env.Create(t, owner)
			set := Ensure(with(Build(func(o *corev1.ConfigMap) *corev1.ConfigMap {
				return NewConfigMap(o, map[string]string{"motto": "of the operator"})
			}), options...))
			if finalizer := set.FinalizerName(); finalizer != "" {
				controllerutil.AddFinalizer(owner, finalizer)
				require.NoError(t, env.Other.Update(t.Context(), owner))
			}
			err := set.Reconcile(t.Context(), env.Client, owner)
			require.ErrorContains(t, err, "is its own owner: give the child another name than its owner's (ownedresources.TestChildThatIsItsOwnOwner")
			require.Empty(t, requestsFor(env, "configmaps"), "no request may be sent")
			live := namedConfigMap("", "web")
			require.True(t, env.Exists(t, live))
			require.Equal(t, owner.ResourceVersion, live.ResourceVersion)
		})
	}
	t.Run("cluster-scoped, with a namespace", func(t *testing.T) { // the API server drops the namespace
		env := newEnvInMemory(t)
		owner := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace}}
		env.CreateForTest(t, owner)
		set := Ensure(Build(func(o *rbacv1.ClusterRole) *rbacv1.ClusterRole {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: "stray"}}
		}).Adopt())
		require.ErrorContains(t, set.Reconcile(t.Context(), env.Client, owner), "is its own owner")
		require.Empty(t, requestsFor(env, "clusterroles"), "no request may be sent")
	})
	t.Run("Apply", func(t *testing.T) {
		env := newEnvInMemory(t)
		_, err := Apply(t.Context(), env.Client, env.Owner, env.Owner.DeepCopy())
		require.ErrorContains(t, err, "is its own owner")
		require.Empty(t, env.Requests.Sent(), "no request may be sent")
	})
}

// requestsFor returns the requests for a resource that the operator has sent so far.
func requestsFor(env *serverEnv, resource string) (sent []string) {
	for _, request := range env.Requests.Sent() {
		if request == "GET "+resource || request == "POST "+resource || request == "PATCH "+resource || request == "DELETE "+resource {
			sent = append(sent, request)
		}
	}
	return sent
}

// The message for a child without a name says where it is built, and what to write.
func TestChildWithoutAName(t *testing.T) {
	env := newEnvInMemory(t)
	err := Ensure(Build(func(*Shop) *corev1.ConfigMap { return &corev1.ConfigMap{} })).Reconcile(t.Context(), env.Client, env.Owner)
	require.ErrorContains(t, err, "a ConfigMap has no name: set metadata.name in the function that builds it, such as ownedresources.ObjectMeta(owner) does")
	require.ErrorContains(t, err, "(ownedresources.TestChildWithoutAName")
}
