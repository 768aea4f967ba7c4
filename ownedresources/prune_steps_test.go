package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// In package reconcile a set prunes at the end of a reconcile, after all steps. So a new version of an operator can move
// a child from one step to another without deleting it.
func TestPruneRunsAfterAllSteps(t *testing.T) {
	cp := controlPlane(t)
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.Namespace(t, cp), Name: "web"}}
	require.NoError(t, c.Create(t.Context(), owner))

	named := func(name string, wanted bool) AnyChild[*Shop] {
		return Build(func(*Shop) *corev1.ConfigMap {
			if !wanted {
				return nil
			}
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		})
	}
	release := func(inFirst, inSecond, extra bool) {
		r := reconcile.New(c,
			reconcile.Named("first", Ensure(named("moves", inFirst), named("extra", extra))),
			reconcile.Named("second", Ensure(named("moves", inSecond), named("stays", true))))
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(owner)})
		require.NoError(t, err)
	}
	get := func(name string) (cm corev1.ConfigMap, err error) {
		return cm, c.Get(t.Context(), client.ObjectKey{Namespace: owner.Namespace, Name: name}, &cm)
	}
	release(true, false, true)
	before, err := get("moves")
	require.NoError(t, err)
	for _, home := range []string{"second", "first"} { // the child moves to the later step, and back
		release(home == "first", home == "second", home == "second")
		after, err := get("moves")
		require.NoError(t, err)
		require.Equal(t, before.UID, after.UID, "it was not deleted")
		require.Equal(t, home, after.Annotations[record.Set])
	}
	_, err = get("extra")
	require.NoError(t, client.IgnoreNotFound(err))
	require.Error(t, err, "a child that no step builds is deleted")
}
