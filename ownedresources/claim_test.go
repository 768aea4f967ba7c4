package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A child may come after a PersistentVolumeClaim. It must not wait until the claim is bound: the storage class may bind the claim only
// when a pod uses it, and that pod may come after the claim.
func TestAfterAClaim(t *testing.T) {
	env := newEnvInMemory(t)
	claim := Build(func(*Shop) *corev1.PersistentVolumeClaim { return env.claim() })
	set := Ensure(claim, Build(func(s *Shop) *corev1.ConfigMap { return NewConfigMap(s, nil) }).After(claim))
	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "NotBound")
	require.True(t, env.Exists(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}}), "the claim is not ready, and holds nothing back")

	lost := env.retained()
	require.True(t, env.Exists(t, lost))
	lost.Status.Phase = corev1.ClaimLost
	require.NoError(t, env.Other.Status().Update(t.Context(), lost))
	require.NoError(t, env.Other.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web"}}))
	require.Error(t, set.Reconcile(t.Context(), env.Client, env.Owner))
	require.False(t, env.Exists(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}}), "a claim that is lost holds it back")
}
