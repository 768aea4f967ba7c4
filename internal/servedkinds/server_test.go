package servedkinds

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

var (
	monitorGVK = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Monitor"}
	ruleGVK    = schema.GroupVersionKind{Group: "rules.example.com", Version: "v1", Kind: "Rule"}
)

// poll is the longest time until discovery alone notices a change.
const poll = defaultPeriod + defaultPeriod/10 + time.Second

// testServer stands for the API server's discovery, the manager's cache and the objects, in a bubble of package testing/synctest.
type testServer struct {
	meta.RESTMapper // nil, because only RESTMapping is called

	t     *testing.T
	kinds *Kinds

	mu         sync.Mutex
	served     map[schema.GroupVersionKind]metav1.APIResource
	err        error // the error that discovery returns
	checks     int
	sources    map[schema.GroupVersionKind]*fcache.FakeControllerSource
	allSources []*fcache.FakeControllerSource
	informers  map[schema.GroupVersionKind]*testInformer
	removed    []string
	indexError error
	forbidden  bool // lists of objects are refused as forbidden

	stop func() // stops the Kinds, and waits until they have ended
}

type testInformer struct {
	toolscache.SharedIndexInformer
	stop     context.CancelFunc
	handlers atomic.Int32
}

func (i *testInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers.Add(1)
	return i.SharedIndexInformer.AddEventHandlerWithOptions(h, o)
}

// newTestServer returns a server that serves no kind, and starts its Kinds.
func newTestServer(t *testing.T) *testServer {
	s := &testServer{
		t: t, served: map[schema.GroupVersionKind]metav1.APIResource{},
		sources:   map[schema.GroupVersionKind]*fcache.FakeControllerSource{},
		informers: map[schema.GroupVersionKind]*testInformer{},
	}
	s.kinds = newKinds(s, runtime.NewScheme(), s, s, testr.New(t))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.NoError(t, s.kinds.Start(ctx))
	}()
	s.stop = func() {
		stop()
		<-done
	}
	t.Cleanup(func() {
		s.stop()
		for _, i := range s.informers {
			i.stop()
		}
		for _, source := range s.allSources {
			source.Shutdown()
		}
		synctest.Wait()
	})
	return s
}

var allVerbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

func (s *testServer) serve(gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[gvk] = metav1.APIResource{Name: gvk.Kind + "s", Kind: gvk.Kind, Namespaced: true, Verbs: allVerbs}
	s.sources[gvk] = fcache.NewFakeControllerSource()
	s.allSources = append(s.allSources, s.sources[gvk])
}

func (s *testServer) remove(gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.served, gvk)
}

func (s *testServer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *testServer) failIndex(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexError = err
}

func (s *testServer) create(gvk schema.GroupVersionKind, name string) {
	obj := objectOf(gvk)
	obj.SetNamespace("default")
	obj.SetName(name)
	s.sources[gvk].Add(obj)
}

func (s *testServer) removals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removed
}

func (s *testServer) discoveryReads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checks
}

func (s *testServer) resources(_ context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks++
	list := &metav1.APIResourceList{}
	for gvk, resource := range s.served {
		if gvk.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, resource)
		}
	}
	if s.err == nil && len(list.APIResources) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv.String())
	}
	return list, s.err
}

func (s *testServer) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.informers[gvk]; i != nil {
		return i, nil
	}
	var objects toolscache.ListerWatcher = s.sources[gvk]
	if s.forbidden {
		refusal := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("injected"))
		objects = &toolscache.ListWatch{
			ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, refusal },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, refusal },
		}
	}
	i := &testInformer{SharedIndexInformer: toolscache.NewSharedIndexInformer(objects, objectOf(gvk), 0, toolscache.Indexers{})}
	// The default handler sleeps, by a clock that is not the fake clock of synctest.
	if err := i.SetWatchErrorHandler(func(*toolscache.Reflector, error) {}); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(s.t.Context())
	i.stop = stop
	s.informers[gvk] = i
	go i.RunWithContext(ctx)
	return i, nil
}

func (s *testServer) RemoveInformer(_ context.Context, obj client.Object) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = append(s.removed, gvk.Kind)
	if i := s.informers[gvk]; i != nil {
		i.stop()
		delete(s.informers, gvk)
	}
	return nil
}

func (s *testServer) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	s.mu.Lock()
	injected := s.indexError
	s.mu.Unlock()
	if injected != nil {
		return injected
	}
	i, err := s.GetInformer(ctx, obj)
	if err != nil {
		return err
	}
	return i.AddIndexers(toolscache.Indexers{field: func(obj any) ([]string, error) { return extract(obj.(client.Object)), nil }})
}

// RESTMapping maps kinds as discovery shows them.
func (s *testServer) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	gvk := gk.WithVersion(versions[0])
	return &meta.RESTMapping{Resource: gvk.GroupVersion().WithResource(gvk.Kind + "s"), GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}, nil
}

func objectOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// testController is a controller with one Watch. An event enqueues the name of the object. If the API server begins or ceases to serve the
// kind, "owner" is enqueued.
type testController struct {
	*Watch
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
	stop  context.CancelFunc
}

func requestOf(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func (s *testServer) newWatch(gvk schema.GroupVersionKind) *Watch {
	s.t.Helper()
	w, err := s.kinds.Watch(objectOf(gvk), Options{
		Indexes: map[string]client.IndexerFunc{"name": func(obj client.Object) []string { return []string{obj.GetName()} }},
		Handlers: []Handler{{Handler: handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []ctrl.Request {
			return []ctrl.Request{requestOf(obj.GetName())}
		})}},
		Requests: func(context.Context) ([]ctrl.Request, error) { return []ctrl.Request{requestOf("owner")}, nil },
	})
	require.NoError(s.t, err)
	return w
}

// start starts a watch as a controller does, and returns when the controller would start its workers.
func (s *testServer) start(w *Watch) *testController {
	s.t.Helper()
	c := &testController{Watch: w, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())}
	ctx, stop := context.WithCancel(s.t.Context())
	c.stop = func() {
		stop()
		c.queue.ShutDown()
	}
	s.t.Cleanup(c.stop)
	require.NoError(s.t, w.Start(ctx, c.queue))
	waiting, end := context.WithTimeout(ctx, 2*time.Minute)
	defer end()
	require.NoError(s.t, w.WaitForSync(waiting))
	synctest.Wait()
	return c
}

// reads reports whether reads of the kind are permitted.
func (c *testController) reads() bool {
	if !c.Acquire() {
		return false
	}
	c.Release()
	return true
}

// took returns what is in the queue, and empties it.
func (c *testController) took() []string {
	synctest.Wait()
	var names []string
	for c.queue.Len() > 0 {
		request, _ := c.queue.Get()
		c.queue.Done(request)
		names = append(names, request.Name)
	}
	return names
}

// wait lets time pass.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
