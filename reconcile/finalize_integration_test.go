package reconcile_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

func TestRequestsFromCreationToDeletion(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("account", cleaning{step(nil), step(nil).Reconcile}).Finalizer("example.com/account"),
		reconcile.Named("children", ownedresources.Ensure(ownedresources.Build(settings), ownedresources.Build(more))),
	).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "ready", isReady)
	require.Equal(t, []string{"PATCH poddisruptionbudgets", "POST configmaps", "POST configmaps", "PATCH poddisruptionbudgets/status"}, w.count.Sent(),
		"one for the finalizer, one a child, one for the status")
	require.NoError(t, w.client.Delete(t.Context(), b))
	w.isGone(t, b)

	// Another object is created after the deletion. When it is ready, all passes that the deletion has triggered are
	// over.
	other := w.create(t, "b")
	w.waitFor(t, other, "ready", isReady)
	require.Equal(t, []string{
		"PATCH poddisruptionbudgets",
		"PATCH poddisruptionbudgets", "POST configmaps", "POST configmaps", "PATCH poddisruptionbudgets/status",
	}, w.count.Sent(), "one for the deletion; the rest is the other object's")
}

// The second of three cleanups waits for an object that somebody else must delete.
func TestFinalizeWaitsInReverseOrder(t *testing.T) {
	w := newEnv(t)
	var cleaned []string
	clean := func(name string) reconcile.Step[*budget] {
		return reconcile.Func(func(ctx context.Context, c client.Client, b *budget) error {
			if name == "two" {
				switch err := c.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: "lock"}, &corev1.ConfigMap{}); {
				case err == nil:
					return reconcile.Wait("Locked", 0, "ConfigMap lock is there")
				case !apierrors.IsNotFound(err):
					return err
				}
			}
			cleaned = append(cleaned, name)
			return nil
		})
	}
	toA := func(_ context.Context, _ client.Reader, obj *corev1.ConfigMap) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: "a"}}}
	}
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("one", cleaning{step(nil), clean("one").Reconcile}).Finalizer("example.com/one"),
		reconcile.Named("two", cleaning{step(nil), clean("two").Reconcile}, reconcile.Watching(&corev1.ConfigMap{}, toA)).Finalizer("example.com/two").
			Reporting("Two"),
		reconcile.Named("three", cleaning{step(nil), clean("three").Reconcile}).Finalizer("example.com/three"),
	).Complete())
	w.run(t)
	lock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "lock"}}
	require.NoError(t, w.client.Create(t.Context(), lock))
	b := w.create(t, "a")
	w.waitFor(t, b, "ready", isReady)
	require.Equal(t, []string{"example.com/one", "example.com/two", "example.com/three"}, b.Finalizers)

	require.NoError(t, w.client.Delete(t.Context(), b))
	w.waitFor(t, b, "what it waits for is shown", func(b *budget) bool {
		ready, _ := conditions.Get(b.Status.Conditions, "Ready")
		two, _ := conditions.Get(b.Status.Conditions, "Two")
		return ready.Reason == "Locked" && two.Reason == "Locked" && conditions.IsTrue(b.Status.Conditions, "Reconciling")
	})
	require.Equal(t, []string{"example.com/one", "example.com/two"}, b.Finalizers)
	require.NoError(t, w.client.Delete(t.Context(), lock))
	w.isGone(t, b)
	require.Equal(t, []string{"three", "two", "one"}, cleaned)
}
