package predicates_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

// No controllers run: nobody but the test writes.
var controlPlane = controlplanetest.Shared()

const eventually = 20 * time.Second

// watch gives the events of one kind as a real API server, cache and source make them.
type watch struct {
	client.Client
	cache     cache.Cache
	namespace string
	events    chan any
	cut       *cut
}

func newWatch(t *testing.T, kind client.Object, options cache.Options) *watch {
	t.Helper()
	cp := controlPlane(t)
	w := &watch{namespace: controlplanetest.Namespace(t, cp), events: make(chan any, 100), cut: &cut{}}
	var err error
	w.Client, err = client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	options.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	config := rest.CopyConfig(cp.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { w.cut.next = next; return w.cut })
	w.cache, err = cache.New(config, options)
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.cache.Start(ctx) }()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	t.Cleanup(func() {
		stop()
		w.cut.release()
		require.NoError(t, <-ended)
		queue.ShutDown()
	})
	s := source.Kind(w.cache, kind, &handler.EnqueueRequestForObject{}, predicate.Predicate(recorder(w.events)))
	require.NoError(t, s.Start(ctx, queue))
	require.NoError(t, s.WaitForSync(ctx))
	return w
}

// next gives the next event.
func (w *watch) next(t *testing.T) any {
	t.Helper()
	select {
	case e := <-w.events:
		return e
	case <-time.After(eventually):
		t.Fatal("no event")
		return nil
	}
}

func nextAs[E any](t *testing.T, w *watch) E {
	t.Helper()
	e := w.next(t)
	as, ok := e.(E)
	require.True(t, ok, "got %#v", e)
	return as
}

func (w *watch) patch(t *testing.T, obj client.Object, merge string) {
	t.Helper()
	require.NoError(t, w.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(merge))))
}

// recorder is a predicate that notes all events.
type recorder chan any

func (r recorder) Create(e event.CreateEvent) bool   { r <- e; return false }
func (r recorder) Update(e event.UpdateEvent) bool   { r <- e; return false }
func (r recorder) Delete(e event.DeleteEvent) bool   { r <- e; return false }
func (r recorder) Generic(e event.GenericEvent) bool { r <- e; return false }

const gaugeKind = "predicates.example.com/v1, Kind=Gauge"

// gauge is a custom resource with a status subresource.
func gauge(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	require.NoError(t, controlPlane(t).InstallCRDs(t.Context(), "testdata/gauges.yaml"))
	apiVersion, kind, _ := strings.Cut(gaugeKind, ", Kind=")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName("web")
	return u
}

func spec(u *unstructured.Unstructured) any { return u.Object["spec"] }
