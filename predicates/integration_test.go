package predicates_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestRealLifeOfACustomResource shows which predicates pass each kind of write to a custom resource.
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
		require.Equal(t, want.Label, predicates.Label("target").Changed().Update(e), "%s: LabelChanged", reason)
		require.Equal(t, want.Annotation, predicates.Annotation("restart").Changed().Update(e), "%s: AnnotationChanged", reason)
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
	require.True(t, predicates.Label("target").Equals("green").Delete(d), "the final state is the last one")
	require.False(t, predicates.Label("target").Equals("blue").Delete(d))
	require.True(t, predicates.DeletionStarted().Delete(d))
}

// An object without finalizers is deleted without an update event.
func TestRealDeletionWithoutFinalizers(t *testing.T) {
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
	require.NoError(t, w.Create(t.Context(), obj))
	nextCreated(t, w)
	require.NoError(t, w.Delete(t.Context(), obj))
	e := nextAs[event.DeleteEvent](t, w)
	require.Nil(t, e.Object.GetDeletionTimestamp(), "surprise: not even the final state has a deletion timestamp")
	require.True(t, predicates.DeletionStarted().Delete(e))
}

// TestRealGenerations shows which writes change the generation, by kind.
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
		require.True(t, passes(predicates.GenerationChanged(), w.next(t)), "surprise: a controller that writes the status triggers its own next reconcile")
		w.patch(t, obj, `{"data":{"limit":1}}`)
		require.True(t, passes(predicates.GenerationChanged(), w.next(t)), "a change of any field counts")
		w.patch(t, obj, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"6d1f"}]}}`)
		require.False(t, passes(predicates.GenerationChanged(), w.next(t)), "except metadata")
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

func TestRealLabelChanges(t *testing.T) {
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{})
	p := predicates.Label("target").EqualsFold("blue")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web", Labels: map[string]string{"target": "Blue"}}}
	require.NoError(t, w.Create(t.Context(), obj))
	require.True(t, passes(p, w.next(t)))
	w.patch(t, obj, `{"metadata":{"labels":{"target":"green"}}}`)
	require.True(t, passes(p, w.next(t)), "the object stops matching, which passes once")
	w.patch(t, obj, `{"data":{"a":"b"}}`)
	require.False(t, passes(p, w.next(t)), "the object does not match")
	w.patch(t, obj, `{"metadata":{"labels":{"target":"BLUE"}}}`)
	require.True(t, passes(p, w.next(t)), "the object matches again")
	w.patch(t, obj, `{"metadata":{"labels":null}}`)
	require.True(t, passes(p, w.next(t)), "the object stops matching because its label is removed")
	require.NoError(t, w.Delete(t.Context(), obj))
	require.False(t, passes(p, w.next(t)))
}

// TestRealCacheWithSelector shows the difference between a cache with a selector and a predicate that filters.
func TestRealCacheWithSelector(t *testing.T) {
	selector, err := labels.Set{"target": "blue"}.AsValidatedSelector()
	require.NoError(t, err)
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: selector}}})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web", Labels: map[string]string{"target": "BLUE"}}}
	require.NoError(t, w.Create(t.Context(), obj), "no event: the case differs")
	w.patch(t, obj, `{"metadata":{"labels":{"target":"blue"}}}`)
	c := nextAs[event.CreateEvent](t, w)
	require.Equal(t, "web", c.Object.GetName(), "surprise: a change of the label is a creation, the first event for an object that already existed")

	w.patch(t, obj, `{"metadata":{"labels":{"target":"green"}}}`)
	d := nextAs[event.DeleteEvent](t, w)
	require.Equal(t, "blue", d.Object.GetLabels()["target"], "the event has the state before the change")
	require.False(t, d.DeleteStateUnknown)
	require.True(t, predicates.Label("target").Equals("blue").Delete(d))

	key := client.ObjectKeyFromObject(obj)
	require.True(t, apierrors.IsNotFound(w.cache.Get(t.Context(), key, &corev1.ConfigMap{})), "surprise: the cache returns NotFound")
	require.NoError(t, w.Get(t.Context(), key, &corev1.ConfigMap{}), "the API server still has the object")
}

// A resync is an update from an object to itself.
func TestRealResync(t *testing.T) {
	w := newWatch(t, &corev1.ConfigMap{}, cache.Options{SyncPeriod: new(time.Second)})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web", Labels: map[string]string{"target": "blue"}}}
	require.NoError(t, w.Create(t.Context(), obj))
	nextCreated(t, w)
	e := nextAs[event.UpdateEvent](t, w)
	require.Equal(t, e.ObjectOld.GetResourceVersion(), e.ObjectNew.GetResourceVersion())
	require.True(t, predicates.Label("target").Equals("blue").Update(e), "filters pass it")
	require.True(t, predicates.NotPaused(time.Now).Update(e))
	require.False(t, predicates.GenerationChanged().Update(e), "change predicates drop it, also for a kind without generation")
	require.False(t, predicates.Label("target").Changed().Update(e))
	require.False(t, predicates.DeletionStarted().Update(e))
}

// TestRealInterruptedWatch shows how the cache reports the events that an interrupted watch has missed.
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

	w.interrupter.interrupt()
	w.patch(t, gone, `{"metadata":{"labels":{"target":"blue"}}}`)
	require.NoError(t, w.Delete(t.Context(), gone))
	require.NoError(t, w.Delete(t.Context(), again))
	again = create("again")
	w.interrupter.release()

	for range 2 {
		switch e := w.next(t).(type) {
		case event.UpdateEvent:
			require.Equal(t, "again", e.ObjectNew.GetName())
			require.Equal(t, again.UID, e.ObjectNew.GetUID())
			require.NotEqual(t, again.UID, e.ObjectOld.GetUID(), "surprise: an update from an object to another one with the same name")
			require.Equal(t, e.ObjectOld.GetGeneration(), e.ObjectNew.GetGeneration())
			require.True(t, predicates.GenerationChanged().Update(e))
			require.True(t, predicates.Label("target").Changed().Update(e))
			require.True(t, predicates.DeletionStarted().Update(e), "the old object is deleted")
		case event.DeleteEvent:
			require.Equal(t, "gone", e.Object.GetName())
			require.True(t, e.DeleteStateUnknown)
			require.Equal(t, "green", e.Object.GetLabels()["target"], "surprise: the last known state, not the final one")
			require.True(t, predicates.Label("target").Equals("blue").Delete(e), "therefore filters pass it")
			require.True(t, predicates.Namespaces(w.namespace).Delete(e))
			require.False(t, predicates.Namespaces("elsewhere").Delete(e), "except filters on what never changes")
		default:
			t.Fatalf("unexpected %#v", e)
		}
	}
}

// TestRealBuilder runs the controller of one operator. Several operators share its kind, and each reconciles the
// objects with its own label. The test proves that the controller gets the reconciles that it needs, and no others.
func TestRealBuilder(t *testing.T) {
	kind := gauge(t, "")
	cp := controlPlane(t)
	namespace := controlplane.Namespace(t, cp)
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(controlplane.Patience),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	reconciles := make(chan string, 100)
	record := ctrlreconcile.Func(func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
		reconciles <- r.Name
		return ctrl.Result{}, nil
	})
	secrets := predicates.Typed[*corev1.Secret](predicates.SpecChanged(func(s *corev1.Secret) map[string][]byte { return s.Data }))
	require.NoError(t, ctrl.NewControllerManagedBy(mgr).Named("gauges").
		For(kind, builder.WithPredicates(
			predicates.Label("target").EqualsFold("blue"),
			predicate.Or(predicates.GenerationChanged(), predicates.Label("target").Changed()),
		)).
		WatchesRawSource(source.Kind(mgr.GetCache(), &corev1.Secret{}, &handler.TypedEnqueueRequestForObject[*corev1.Secret]{}, secrets)).
		Complete(record))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})

	expect := func(reason, want string) {
		t.Helper()
		select {
		case got := <-reconciles:
			require.Equal(t, want, got, reason)
		case <-time.After(eventually):
			t.Fatal("no reconcile: " + reason)
		}
	}
	create := func(name, target string) client.Object {
		obj := gauge(t, namespace)
		obj.SetName(name)
		obj.SetLabels(map[string]string{"target": target})
		require.NoError(t, c.Create(ctx, obj))
		return obj
	}
	merge := func(obj client.Object, patch string) {
		t.Helper()
		require.NoError(t, c.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}

	create("theirs", "green")
	ours := create("ours", "Blue")
	expect("the creation of a matching object", "ours") // after this event the watch runs; the events of the initial list have no order
	marker := create("marker", "blue")
	expect("the creation of a matching object", "marker")
	require.NoError(t, c.Status().Patch(ctx, ours, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"level":1}}`))))
	merge(marker, `{"spec":{"limit":1}}`)
	expect("a write of the own status triggers no reconcile", "marker")
	merge(ours, `{"metadata":{"labels":{"target":"green"}}}`)
	expect("the object stops matching", "ours")
	merge(ours, `{"spec":{"limit":1}}`)
	merge(marker, `{"spec":{"limit":2}}`)
	expect("the object does not match", "marker")

	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = namespace, "password"
	require.NoError(t, c.Create(ctx, secret))
	expect("a typed source", "password")
	merge(secret, `{"metadata":{"labels":{"a":"b"}}}`)
	merge(secret, `{"data":{"a":"Yg=="}}`)
	expect("one reconcile, for the data", "password")
	merge(marker, `{"spec":{"limit":3}}`)
	expect("and none for the label", "marker")
}
