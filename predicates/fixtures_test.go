package predicates_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	blue      = label("target", "blue")
	shouted   = label("target", "BLUE")
	green     = label("target", "green")
	unlabeled = func(*corev1.Pod) {}
)

type cases map[string]struct {
	reason    string
	predicate predicate.Predicate
	event     any
	want      bool
}

func (cs cases) run(t *testing.T) {
	t.Helper()
	for name, tc := range cs {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, passes(tc.predicate, tc.event), tc.reason)
		})
	}
}

// passes reports whether the predicate passes the event. e may be an event of any kind.
func passes(p predicate.Predicate, e any) bool {
	switch e := e.(type) {
	case event.CreateEvent:
		return p.Create(e)
	case event.UpdateEvent:
		return p.Update(e)
	case event.DeleteEvent:
		return p.Delete(e)
	case event.GenericEvent:
		return p.Generic(e)
	default:
		panic(fmt.Sprintf("%T is not an event", e))
	}
}

func created(obj client.Object) any { return event.CreateEvent{Object: obj} }
func updated(before, now client.Object) any {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: now}
}
func deleted(obj client.Object) any { return event.DeleteEvent{Object: obj} }
func missed(obj client.Object) any  { return event.DeleteEvent{Object: obj, DeleteStateUnknown: true} }
func generic(obj client.Object) any { return event.GenericEvent{Object: obj} }

// pod returns a Pod with the given changes.
func pod(of ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f", Generation: 1, ResourceVersion: "100"}}
	for _, f := range of {
		f(p)
	}
	return p
}

func label(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func uid(uid string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = types.UID(uid) } }

func generation(n int64) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Generation = n } }

func version(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = v } }

func onNode(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func beingDeleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }

func condition(status metav1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: "Ready", Status: corev1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: noon},
		})
	}
}

// controlPlane runs an API server without controllers, so only the test writes.
var controlPlane = controlplane.Shared(controlplane.Options{})

const eventually = controlplane.Patience

// watch is a watch of one kind on a real API server. It records the events that reach a controller.
type watch struct {
	client.Client
	cache       cache.Cache
	namespace   string
	events      chan any
	interrupter *interrupter
}

func newWatch(t *testing.T, kind client.Object, options cache.Options) *watch {
	t.Helper()
	cp := controlPlane(t)
	w := &watch{namespace: controlplane.Namespace(t, cp), events: make(chan any, 100), interrupter: &interrupter{}}
	var err error
	w.Client, err = client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	options.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	config := rest.CopyConfig(cp.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { w.interrupter.next = next; return w.interrupter })
	w.cache, err = cache.New(config, options)
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.cache.Start(ctx) }()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	t.Cleanup(func() {
		stop()
		w.interrupter.release()
		require.NoError(t, <-ended)
		queue.ShutDown()
	})
	s := source.Kind(w.cache, kind, &handler.EnqueueRequestForObject{}, predicate.Predicate(recorder(w.events)))
	require.NoError(t, s.Start(ctx, queue))
	require.NoError(t, s.WaitForSync(ctx))
	return w
}

// next returns the next event.
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

// recorder is a predicate that records all events and drops them.
type recorder chan any

func (r recorder) Create(e event.CreateEvent) bool   { r <- e; return false }
func (r recorder) Update(e event.UpdateEvent) bool   { r <- e; return false }
func (r recorder) Delete(e event.DeleteEvent) bool   { r <- e; return false }
func (r recorder) Generic(e event.GenericEvent) bool { r <- e; return false }

const gaugeKind = "predicates.example.com/v1, Kind=Gauge"

// gauge returns a custom resource with a status subresource, and installs its CustomResourceDefinition.
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

// interrupter is a transport that can interrupt watches. The interruption can be so long that the API server no longer
// has the missed events.
type interrupter struct {
	next http.RoundTripper

	mu       sync.Mutex
	bodies   []io.Closer
	released chan struct{} // nil unless watches are interrupted
}

// interrupt ends all watches. New watches wait for release.
func (i *interrupter) interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.released = make(chan struct{})
	for _, body := range i.bodies {
		_ = body.Close()
	}
	i.bodies = nil
}

// release answers the waiting watches with 410 Gone. The API server would do so after some minutes. Later watches work
// again.
func (i *interrupter) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.released != nil {
		close(i.released)
		i.released = nil
	}
}

func (i *interrupter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "true" {
		return i.next.RoundTrip(r)
	}
	i.mu.Lock()
	released := i.released
	i.mu.Unlock()
	if released != nil {
		select {
		case <-released:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return &http.Response{
			StatusCode: http.StatusGone, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)),
		}, nil
	}
	response, err := i.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.released != nil { // interrupt was called before the API server's response came
		_ = response.Body.Close()
	}
	i.bodies = append(i.bodies, response.Body)
	return response, nil
}
