package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/internal/owned"
)

// If an object has the label app.kubernetes.io/instance=NAME and no owner reference, Argo CD believes that it belongs to the application
// NAME: in version 2 by default, and in later versions by a setting. Argo CD then prunes the object, because it is not in git.
func TestChildrenWithoutOwnerReferenceAreNotTakenForAnApplications(t *testing.T) {
	env := newEnvInMemory(t)
	claim := func(o *Shop) *corev1.PersistentVolumeClaim {
		made := env.claim()
		made.ObjectMeta = ObjectMeta(o)
		return made
	}
	role := func(o *Shop) *rbacv1.ClusterRole {
		made := &rbacv1.ClusterRole{ObjectMeta: ObjectMeta(o)}
		made.Name = o.Namespace + "-shop"
		return made
	}
	binding := func(o *Shop) *rbacv1.ClusterRoleBinding {
		made := &rbacv1.ClusterRoleBinding{ObjectMeta: role(o).ObjectMeta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role(o).Name}}
		made.RoleRef.APIGroup = rbacv1.GroupName
		return made
	}
	keep := true
	service := func(o *Shop) *corev1.Service {
		made := NewService(o, nil, corev1.ServicePort{Port: 80})
		made.Annotations = map[string]string{"argocd.argoproj.io/sync-options": "Replace=true"}
		return made
	}
	set := Ensure(
		Build(claim).Retain(func(*Shop) bool { return keep }), Build(role).Anywhere(), Build(binding).Anywhere(), Build(service).Anywhere(),
		Build(func(o *Shop) *corev1.ConfigMap { return NewConfigMap(o, nil) }))
	set.SetName("children")
	controllerutil.AddFinalizer(env.Owner, set.FinalizerName())
	require.NoError(t, env.Other.Update(t.Context(), env.Owner))

	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "NotBound")
	env.DeleteAfter(t, role(env.Owner))
	env.DeleteAfter(t, binding(env.Owner))
	live := func(obj client.Object) client.Object {
		switch obj.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			obj.SetNamespace("")
		}
		require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
		return obj
	}
	require.NotContains(t, live(claim(env.Owner)).GetLabels(), owned.InstanceLabel, "it is retained")
	require.NotContains(t, live(binding(env.Owner)).GetLabels(), owned.InstanceLabel, "it is cluster-scoped")
	aggregated := live(role(env.Owner))
	require.Equal(t, "web", aggregated.GetLabels()[owned.InstanceLabel], "an aggregated ClusterRole selects others by their labels")
	require.Equal(t, "Prune=false", aggregated.GetAnnotations()["argocd.argoproj.io/sync-options"])
	selected := live(service(env.Owner))
	require.Equal(t, "web", selected.GetLabels()[owned.InstanceLabel], "others select Services by their labels")
	require.Equal(t, "Replace=true,Prune=false", selected.GetAnnotations()["argocd.argoproj.io/sync-options"])
	require.Equal(t, map[string]string{owned.InstanceLabel: "web", "app.kubernetes.io/name": "shop"}, selected.(*corev1.Service).Spec.Selector, "the pods have it")
	require.Equal(t, "web", live(&corev1.ConfigMap{ObjectMeta: ObjectMeta(env.Owner)}).GetLabels()[owned.InstanceLabel], "it has an owner reference")

	keep = false
	_ = set.Reconcile(t.Context(), env.Client, env.Owner)
	require.Equal(t, "web", live(claim(env.Owner)).GetLabels()[owned.InstanceLabel], "it has an owner reference now")
	keep = true
	_ = set.Reconcile(t.Context(), env.Client, env.Owner)
	require.NotContains(t, live(claim(env.Owner)).GetLabels(), owned.InstanceLabel, "it has none any more")
	env.Requests.Sent()
	_ = set.Reconcile(t.Context(), env.Client, env.Owner)
	require.NotContains(t, env.Requests.Sent(), "PATCH persistentvolumeclaims", "nothing is written again")
}
