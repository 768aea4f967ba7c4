package reconcile_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// eventOf waits until the API server has an event whose note begins with note, and returns it.
func (w *env) eventOf(t *testing.T, note string, is func(eventsv1.Event) bool) (found eventsv1.Event) {
	t.Helper()
	require.Eventually(t, func() bool {
		var all eventsv1.EventList
		if w.client.List(t.Context(), &all, client.InNamespace(w.namespace)) != nil {
			return false
		}
		for _, e := range all.Items {
			if strings.HasPrefix(e.Note, note) && is(e) {
				found = e
				return true
			}
		}
		return false
	}, eventually, often, note)
	return found
}

func once(e eventsv1.Event) bool { return e.Series == nil }

// client-go merges two events with the same reason, action, owner and related object, and keeps the note of the first
// one. So events of different children must differ in one of these.
func TestEventsOfChildrenAreNotMerged(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For(w.mgr,
		reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))),
		reconcile.Named("more", ownedresources.Ensure(ownedresources.Build(more), ownedresources.Build(third))),
	).Complete())
	w.run(t)
	b := w.create(t, "a")
	name := w.namespace + "/a"
	first := w.eventOf(t, "Created ConfigMap "+name+"-settings", once)
	second := w.eventOf(t, "Created ConfigMap "+name+"-more, ConfigMap "+name+"-third", once)
	require.Equal(t, []string{"Settings", "More"}, []string{first.Action, second.Action}, "the names of the steps")
	require.Equal(t, []string{"a-settings", "a-more"}, []string{first.Related.Name, second.Related.Name})
	require.Equal(t, "ConfigMap", first.Related.Kind)
	require.Equal(t, first.Regarding, second.Regarding, "they would have been merged")

	// From now on the owner does not change, and both children belong to one step.
	w.waitFor(t, b, "ready", isReady)
	for _, child := range []*corev1.ConfigMap{third(b), more(b)} {
		require.NoError(t, w.client.Delete(t.Context(), child))
		w.eventOf(t, "Created ConfigMap "+client.ObjectKeyFromObject(child).String(), func(e eventsv1.Event) bool { return once(e) && e.Note != second.Note })
	}
}

func third(b *budget) *corev1.ConfigMap {
	m := more(b)
	m.Name = b.Name + "-third"
	return m
}

// The role of the operator allows only events of the group events.k8s.io.
func TestEventsNeedOneGroup(t *testing.T) {
	namespace := controlplane.Namespace(t, controlPlane(t))
	admin, err := client.New(controlPlane(t).Config(), client.Options{})
	require.NoError(t, err)
	mgr, err := reconcile.NewManager(account(t, namespace, "get,list,watch poddisruptionbudgets.policy", "patch poddisruptionbudgets/status.policy",
		"create,patch events.events.k8s.io", knowsItsRole), options(namespace))
	require.NoError(t, err)
	var twice sync.Once
	require.NoError(t, reconcile.For(mgr, reconcile.Named("greet", reconcile.Func(func(ctx context.Context, _ client.Client, b *budget) error {
		twice.Do(func() {
			reconcile.Eventf(ctx, b, "Normal", "Greeted", "hello")
			reconcile.Eventf(ctx, b, "Normal", "Greeted", "hello")
		})
		return nil
	}))).Complete())
	w := &env{client: admin, mgr: mgr, namespace: namespace}
	w.run(t)
	w.create(t, "a")
	w.eventOf(t, "hello", func(e eventsv1.Event) bool { return e.Series != nil && e.Series.Count == 2 }) // a patch
}
