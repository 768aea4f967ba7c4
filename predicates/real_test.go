package predicates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/opblocks/opblocks/predicates"
)

// What each write to a custom resource brings.
func TestRealLifeOfACustomResource(t *testing.T) {
	kind := gauge(t, "")
	w := newWatch(t, kind, cache.Options{})
	obj := gauge(t, w.namespace)
	specChanged := predicates.SpecChanged(spec)
	type want struct{ Generation, Spec, Label, Annotation, Deletion, Pause bool }
	check := func(reason string, generation int64, want want) {
		t.Helper()
		e := nextAs[event.UpdateEvent](t, w)
		require.Equal(t, generation, e.ObjectNew.GetGeneration(), reason)
		require.Equal(t, want.Generation, predicates.GenerationChanged().Update(e), "%s: GenerationChanged", reason)
		require.Equal(t, want.Spec, specChanged.Update(e), "%s: SpecChanged", reason)
		require.Equal(t, want.Label, predicates.LabelChanged("target").Update(e), "%s: LabelChanged", reason)
		require.Equal(t, want.Annotation, predicates.AnnotationChanged("restart").Update(e), "%s: AnnotationChanged", reason)
		require.Equal(t, want.Deletion, predicates.DeletionStarted().Update(e), "%s: DeletionStarted", reason)
		require.Equal(t, want.Pause, predicates.PauseChanged().Update(e), "%s: PauseChanged", reason)
	}

	require.NoError(t, w.Create(t.Context(), obj))
	c := nextAs[event.CreateEvent](t, w)
	require.EqualValues(t, 1, c.Object.GetGeneration())
	require.False(t, predicates.DeletionStarted().Create(c))

	w.patch(t, obj, `{"spec":{"limit":1}}`)
	check("a new spec", 2, want{Generation: true, Spec: true})
	w.patch(t, obj, `{"metadata":{"labels":{"target":"blue"}}}`)
	check("a label", 2, want{Label: true})
	w.patch(t, obj, `{"metadata":{"annotations":{"restart":"now"}}}`)
	check("an annotation", 2, want{Annotation: true})
	w.patch(t, obj, `{"metadata":{"annotations":{"opblocks.dev/paused":""}}}`)
	check("a pause", 2, want{Pause: true})
	require.NoError(t, w.Status().Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"level":1}}`))))
	check("a status", 2, want{})
	w.patch(t, obj, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	check("a finalizer", 2, want{})
	require.NoError(t, w.Delete(t.Context(), obj))
	check("surprise: the beginning of a deletion", 3, want{Generation: true, Deletion: true})
	w.patch(t, obj, `{"metadata":{"labels":{"target":"green"}}}`)
	check("a label during deletion", 3, want{Label: true})
	w.patch(t, obj, `{"metadata":{"finalizers":null}}`)
	d := nextAs[event.DeleteEvent](t, w)
	require.False(t, d.DeleteStateUnknown)
	require.True(t, predicates.Label("target", "green").Delete(d), "the final state is the last one")
	require.False(t, predicates.Label("target", "blue").Delete(d))
	require.True(t, predicates.DeletionStarted().Delete(d))
}

// An object without finalizers goes without an update that says so.
func TestRealDeletionWithoutFinalizers(t *testing.T) {
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
	require.NoError(t, w.Create(t.Context(), obj))
	nextCreated(t, w)
	require.NoError(t, w.Delete(t.Context(), obj))
	e := nextAs[event.DeleteEvent](t, w)
	require.Nil(t, e.Object.GetDeletionTimestamp(), "surprise: not even the final state says that it is being deleted")
	require.True(t, predicates.DeletionStarted().Delete(e))
}

// The generation is not the same thing for every kind.
func TestRealGenerations(t *testing.T) {
	t.Run("Deployment", func(t *testing.T) {
		w := newWatch(t, &appsv1.Deployment{}, cache.Options{})
		obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web", Finalizers: []string{"example.com/hold"}}}
		obj.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		obj.Spec.Template.Labels = map[string]string{"app": "web"}
		obj.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
		require.NoError(t, w.Create(t.Context(), obj))
		nextCreated(t, w)
		specChanged := predicates.SpecChanged(func(d *appsv1.Deployment) appsv1.DeploymentSpec { return d.Spec })

		w.patch(t, obj, `{"metadata":{"annotations":{"note":"x"}}}`)
		e := nextAs[event.UpdateEvent](t, w)
		require.True(t, predicates.GenerationChanged().Update(e), "surprise: an annotation of a Deployment changes its generation")
		require.False(t, specChanged.Update(e))
		w.patch(t, obj, `{"metadata":{"labels":{"note":"x"}}}`)
		e = nextAs[event.UpdateEvent](t, w)
		require.False(t, predicates.GenerationChanged().Update(e), "a label does not")
		require.NoError(t, w.Delete(t.Context(), obj))
		e = nextAs[event.UpdateEvent](t, w)
		require.True(t, predicates.GenerationChanged().Update(e), "a deletion does")
		require.False(t, specChanged.Update(e))
		w.patch(t, obj, `{"metadata":{"finalizers":null}}`)
		nextAs[event.DeleteEvent](t, w)
	})
	t.Run("CustomWithoutStatusSubresource", func(t *testing.T) {
		kind := gauge(t, "")
		kind.SetKind("Meter")
		w := newWatch(t, kind, cache.Options{})
		obj := gauge(t, w.namespace)
		obj.SetKind("Meter")
		require.NoError(t, w.Create(t.Context(), obj))
		nextCreated(t, w)
		w.patch(t, obj, `{"status":{"level":1}}`)
		require.True(t, passes(predicates.GenerationChanged(), w.next(t)), "surprise: a controller that writes it wakes itself")
		w.patch(t, obj, `{"data":{"limit":1}}`)
		require.True(t, passes(predicates.GenerationChanged(), w.next(t)), "any field counts, wherever it is")
		w.patch(t, obj, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"6d1f"}]}}`)
		require.False(t, passes(predicates.GenerationChanged(), w.next(t)), "but metadata")
	})
	t.Run("ConfigMap", func(t *testing.T) {
		w := newWatch(t, &corev1.ConfigMap{}, cache.Options{})
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
		require.NoError(t, w.Create(t.Context(), obj))
		nextCreated(t, w)
		dataChanged := predicates.SpecChanged(func(c *corev1.ConfigMap) map[string]string { return c.Data })

		w.patch(t, obj, `{"data":{"a":"b"}}`)
		e := nextAs[event.UpdateEvent](t, w)
		require.Zero(t, e.ObjectNew.GetGeneration(), "surprise: a ConfigMap has no generation")
		require.True(t, predicates.GenerationChanged().Update(e), "so every write passes")
		require.True(t, dataChanged.Update(e))
		w.patch(t, obj, `{"metadata":{"labels":{"a":"b"}}}`)
		e = nextAs[event.UpdateEvent](t, w)
		require.True(t, predicates.GenerationChanged().Update(e), "so every write passes")
		require.False(t, dataChanged.Update(e))
	})
}

func nextCreated(t *testing.T, w *watch) { t.Helper(); nextAs[event.CreateEvent](t, w) }

func TestRealRelabelling(t *testing.T) {
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{})
	p := predicates.Label("target", "blue", predicates.FoldCase())
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web", Labels: map[string]string{"target": "Blue"}}}
	require.NoError(t, w.Create(t.Context(), obj))
	require.True(t, passes(p, w.next(t)))
	w.patch(t, obj, `{"metadata":{"labels":{"target":"green"}}}`)
	require.True(t, passes(p, w.next(t)), "it leaves: noticed once")
	w.patch(t, obj, `{"data":{"a":"b"}}`)
	require.False(t, passes(p, w.next(t)), "it is gone for us")
	w.patch(t, obj, `{"metadata":{"labels":{"target":"BLUE"}}}`)
	require.True(t, passes(p, w.next(t)), "it comes back")
	w.patch(t, obj, `{"metadata":{"labels":null}}`)
	require.True(t, passes(p, w.next(t)), "it leaves by losing its label")
	require.NoError(t, w.Delete(t.Context(), obj))
	require.False(t, passes(p, w.next(t)))
}

// Why the selector of a cache is not the same as a filter.
func TestRealCacheWithSelector(t *testing.T) {
	selector, err := predicates.LabelSelector("target", "blue")
	require.NoError(t, err)
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: selector}}})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web", Labels: map[string]string{"target": "BLUE"}}}
	require.NoError(t, w.Create(t.Context(), obj), "no event: the case differs")
	w.patch(t, obj, `{"metadata":{"labels":{"target":"blue"}}}`)
	c := nextAs[event.CreateEvent](t, w)
	require.Equal(t, "web", c.Object.GetName(), "surprise: relabelling is a creation, and the first event of an object that was there")

	w.patch(t, obj, `{"metadata":{"labels":{"target":"green"}}}`)
	d := nextAs[event.DeleteEvent](t, w)
	require.Equal(t, "blue", d.Object.GetLabels()["target"], "with the state before it left")
	require.False(t, d.DeleteStateUnknown)
	require.True(t, predicates.Label("target", "blue").Delete(d))

	key := client.ObjectKeyFromObject(obj)
	require.True(t, apierrors.IsNotFound(w.cache.Get(t.Context(), key, &corev1.ConfigMap{})), "surprise: the cache says that it is gone")
	require.NoError(t, w.Get(t.Context(), key, &corev1.ConfigMap{}), "it is not")
}

// A resync is an update from an object to itself.
func TestRealResync(t *testing.T) {
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{SyncPeriod: new(time.Second)})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web", Labels: map[string]string{"target": "blue"}}}
	require.NoError(t, w.Create(t.Context(), obj))
	nextCreated(t, w)
	e := nextAs[event.UpdateEvent](t, w)
	require.Equal(t, e.ObjectOld.GetResourceVersion(), e.ObjectNew.GetResourceVersion())
	require.True(t, predicates.Label("target", "blue").Update(e), "a filter passes it")
	require.True(t, predicates.NotPaused(time.Now).Update(e))
	require.False(t, predicates.GenerationChanged().Update(e), "a change does not, also of a kind without generation")
	require.False(t, predicates.LabelChanged("target").Update(e))
	require.False(t, predicates.DeletionStarted().Update(e))
}

// What a watch missed comes in another form.
func TestRealInterruptedWatch(t *testing.T) {
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{})
	create := func(name string) *corev1.ConfigMap {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"target": "green"}}}
		require.NoError(t, w.Create(t.Context(), obj))
		return obj
	}
	gone, again := create("gone"), create("again")
	nextCreated(t, w)
	nextCreated(t, w)

	w.cut.interrupt()
	w.patch(t, gone, `{"metadata":{"labels":{"target":"blue"}}}`)
	require.NoError(t, w.Delete(t.Context(), gone))
	require.NoError(t, w.Delete(t.Context(), again))
	again = create("again")
	w.cut.release()

	for range 2 {
		switch e := w.next(t).(type) {
		case event.UpdateEvent:
			require.Equal(t, "again", e.ObjectNew.GetName())
			require.Equal(t, again.UID, e.ObjectNew.GetUID())
			require.NotEqual(t, again.UID, e.ObjectOld.GetUID(), "surprise: an update from an object to its namesake")
			require.Equal(t, e.ObjectOld.GetGeneration(), e.ObjectNew.GetGeneration())
			require.True(t, predicates.GenerationChanged().Update(e))
			require.True(t, predicates.LabelChanged("target").Update(e))
			require.True(t, predicates.DeletionStarted().Update(e), "the former one is gone")
		case event.DeleteEvent:
			require.Equal(t, "gone", e.Object.GetName())
			require.True(t, e.DeleteStateUnknown)
			require.Equal(t, "green", e.Object.GetLabels()["target"], "surprise: the state that was known, not the final one")
			require.True(t, predicates.Label("target", "blue").Delete(e), "so a filter passes it")
			require.True(t, predicates.Namespaces(w.namespace).Delete(e))
			require.False(t, predicates.Namespaces("elsewhere").Delete(e), "but for what never changes")
		default:
			t.Fatalf("unexpected %#v", e)
		}
	}
}
