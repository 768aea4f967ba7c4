package reconcile_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// While an object is paused, no step runs for it: neither after an event of the object itself, nor of a child, nor of
// a referenced object.
func TestPauseWithEveryTrigger(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("account", cleaning{step(nil), step(nil).Reconcile}).Finalizer("example.com/account").
			Reads(&corev1.Secret{}, func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: "shared"}} }),
		reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))),
	).Complete())
	w.run(t)
	paused, alive := w.create(t, "a"), w.create(t, "b")
	w.waitFor(t, paused, "ready", isReady)
	w.waitFor(t, alive, "ready", isReady)
	w.pause(t, paused, `"true"`)
	w.waitFor(t, paused, "paused", isPaused)
	w.count.Sent()

	// The controller has one worker and one watch. So when the child of the other object is repaired, the event of
	// the paused object's child was handled before.
	drift := func(b *budget) {
		child := settings(b)
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(child), child))
		child.Data["for"] = "drift"
		require.NoError(t, w.client.Update(t.Context(), child))
	}
	repaired := func(b *budget) func() bool {
		return func() bool {
			child := settings(b)
			return w.client.Get(t.Context(), client.ObjectKeyFromObject(child), child) == nil && child.Data["for"] == b.Name
		}
	}
	paused.Labels = map[string]string{"changed": "by-somebody"}
	require.NoError(t, w.client.Update(t.Context(), paused))
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shared"}}))
	drift(paused)
	drift(alive)
	require.Eventually(t, repaired(alive), eventually, often)
	require.False(t, repaired(paused)())
	for _, sent := range w.count.Sent() {
		require.Contains(t, sent, "configmaps", "no status is written again")
	}

	w.pause(t, paused, `null`)
	require.Eventually(t, repaired(paused), eventually, often, "what was missed is done")
	w.waitFor(t, paused, "the condition goes", func(b *budget) bool { return !isPaused(b) })
}

func TestCreationAndDeletionWhilePaused(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("account", cleaning{step(nil), step(nil).Reconcile}).Finalizer("example.com/account"),
		reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))),
	).Complete())
	w.run(t)
	b := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a", Annotations: map[string]string{reconcile.PausedAnnotation: "2999-01-01T00:00:00Z"}}}
	require.NoError(t, w.client.Create(t.Context(), b))
	w.waitFor(t, b, "paused", isPaused)
	require.Empty(t, b.Finalizers)
	require.Equal(t, []string{"PATCH poddisruptionbudgets/status"}, w.count.Sent(), "nothing but the condition")
	child := settings(b)
	require.True(t, apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(child), child)))

	w.pause(t, b, `"false"`)
	w.waitFor(t, b, "ready", func(b *budget) bool { return isReady(b) && !isPaused(b) })
	require.Equal(t, []string{"example.com/account"}, b.Finalizers)
	w.pause(t, b, `"until I am back"`)
	w.waitFor(t, b, "paused", isPaused)
	require.NoError(t, w.client.Delete(t.Context(), b))
	w.isGone(t, b)
}

// A person requests a pass by an annotation. Most predicates drop changes of annotations, so such a change must pass
// in any case.
func TestRequestThroughPredicates(t *testing.T) {
	w := newEnv(t)
	var asked atomic.Int32
	require.NoError(t, reconcile.For(w.mgr, reconcile.Named("account", reconcile.Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		if reconcile.Requested(ctx) {
			asked.Add(1)
		}
		return nil
	}))).WithPredicates(predicate.GenerationChangedPredicate{}).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "ready", isReady)
	w.count.Sent()
	for i, value := range []string{`"one"`, `"two"`} {
		data := `{"metadata":{"annotations":{"` + reconcile.RequestedAnnotation + `":` + value + `}}}`
		require.NoError(t, w.client.Patch(t.Context(), b, client.RawPatch(types.MergePatchType, []byte(data))))
		require.Eventually(t, func() bool { return asked.Load() == int32(i)+1 }, eventually, often)
	}
	require.Empty(t, w.count.Sent(), "a request costs the operator no request")
}
