package servedkinds

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// controlPlane runs no controllers. The API server itself serves custom resources, and removes them.
var controlPlane = controlplane.Shared(controlplane.Options{})

const (
	eventually = controlplane.Patience
	often      = 10 * time.Millisecond
)

// runtimeLog has what controller-runtime and its informers have logged in all tests.
var runtimeLog = sync.OnceValue(func() *errorLog {
	l := &errorLog{}
	ctrl.SetLogger(l.logger())
	return l
})

// errorLog keeps the logged errors.
type errorLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *errorLog) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		if !strings.Contains(args, `"error"=`) {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{})
}

// about returns the logged errors about a kind.
func (l *errorLog) about(kind string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.lines), func(line string) bool { return !strings.Contains(line, kind) })
}

// testEnv is a namespace of a real API server, and an API group for the kinds of one test.
type testEnv struct {
	client    client.Client // an administrator's client
	namespace string
	group     string // an API group that only this test uses
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	runtimeLog()
	cp := controlPlane(t)
	namespace := controlplane.Namespace(t, cp)
	require.NoError(t, apiextensionsv1.AddToScheme(scheme.Scheme))
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	return &testEnv{client: c, namespace: namespace, group: namespace + ".example.com"}
}

func (e *testEnv) gvk(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: e.group, Version: "v1", Kind: kind}
}

// install creates the CustomResourceDefinition of a kind, with the versions v1 and v2. It does not wait until they are served.
func (e *testEnv) install(t *testing.T, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	open := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + e.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: e.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: open},
				{Name: "v2", Served: true, Schema: open},
			},
		},
	}
	require.NoError(t, e.client.Create(t.Context(), crd))
	t.Cleanup(func() {
		if err := e.client.Delete(context.Background(), crd); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return crd
}

// uninstall deletes a CustomResourceDefinition, and waits until it is gone.
func (e *testEnv) uninstall(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	require.NoError(t, e.client.Delete(t.Context(), crd))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(e.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	}, eventually, often)
}

// create creates an object, as soon as the API server serves its kind.
func (e *testEnv) create(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	obj := objectOf(e.gvk(kind))
	obj.SetNamespace(e.namespace)
	obj.SetName(name)
	require.Eventually(t, func() bool { return e.client.Create(t.Context(), obj) == nil }, eventually, often, "create %s %s", kind, name)
	return obj
}

// account returns the client configuration of a ServiceAccount that may do everything in the namespace, and nothing outside of it.
func (e *testEnv) account(t *testing.T) *rest.Config {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: e.namespace, Name: "operator"}
	require.NoError(t, e.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}))
	require.NoError(t, e.client.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"},
	}}}))
	require.NoError(t, e.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: e.namespace, Name: "operator"}},
	}))
	account, err := controlPlane(t).ServiceAccountConfig(t.Context(), e.namespace, "operator")
	require.NoError(t, err)
	as, err := client.New(account, client.Options{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return as.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(e.namespace)) == nil
	}, eventually, often, "the authorizer knows the role")
	return account
}

// operator is a manager with controllers of ConfigMaps. The controllers also watch kinds of the test.
type operator struct {
	env   *testEnv
	mgr   ctrl.Manager
	kinds *Kinds
	stop  func()
}

func (e *testEnv) newOperator(t *testing.T, config *rest.Config, namespaces ...string) *operator {
	t.Helper()
	options := ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(controlplane.Patience),
		Controller: controllerOptions,
		Cache:      cache.Options{ReaderFailOnMissingInformer: true}, // so the test sees which informers exist
	}
	for _, namespace := range namespaces {
		options.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	mgr, err := ctrl.NewManager(config, options)
	require.NoError(t, err)
	kinds, err := ForManager(mgr)
	require.NoError(t, err)
	again, err := ForManager(mgr)
	require.NoError(t, err)
	require.Same(t, kinds, again, "a manager has one")
	return &operator{env: e, mgr: mgr, kinds: kinds}
}

var controllerOptions = config.Controller{SkipNameValidation: new(true)}

// controllerOf is a controller with a Watch of one kind. It records the requests that it gets.
type controllerOf struct {
	*Watch
	operator *operator
	kind     string

	mu   sync.Mutex
	seen map[string]int
}

// watch adds a controller with a Watch. An event of an object of the kind enqueues the object's name. If the API server begins or ceases to
// serve the kind, "all" is enqueued.
func (o *operator) watch(t *testing.T, kind string) *controllerOf {
	t.Helper()
	c := &controllerOf{operator: o, kind: kind, seen: map[string]int{}}
	var err error
	c.Watch, err = o.kinds.Watch(objectOf(o.env.gvk(kind)), Options{
		Indexes: map[string]client.IndexerFunc{"test": func(obj client.Object) []string { return []string{obj.GetName()} }},
		Handlers: []Handler{{Handler: handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []ctrl.Request {
			return []ctrl.Request{requestOf(obj.GetName())}
		})}},
		Requests: func(context.Context) ([]ctrl.Request, error) { return []ctrl.Request{requestOf("all")}, nil },
	})
	require.NoError(t, err)
	require.NoError(t, ctrl.NewControllerManagedBy(o.mgr).Named(strings.ToLower(kind)).For(&corev1.ConfigMap{}).WatchesRawSource(c).
		Complete(ctrlreconcile.Func(func(_ context.Context, request ctrl.Request) (ctrl.Result, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.seen[request.Name]++
			return ctrl.Result{}, nil
		})))
	return c
}

func (o *operator) start(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.mgr.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		stop()
		require.NoError(t, <-done)
	})
	t.Cleanup(o.stop)
	require.True(t, o.mgr.GetCache().WaitForCacheSync(ctx))
}

// passes waits until the controller has reconciled the object with this name, and forgets all requests.
func (c *controllerOf) passes(t *testing.T, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.seen[name] > 0
	}, eventually, often, "a pass of %q", name)
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.seen)
}

// isStarted waits until the controller has started its workers. Before that, no change of what is served enqueues anything.
func (c *controllerOf) isStarted(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.operator.kinds.mu.Lock()
		defer c.operator.kinds.mu.Unlock()
		return c.waited
	}, eventually, often, "the controller of %s is started", c.kind)
}

// isWatched waits until reads of the kind are permitted, or until they are not.
func (c *controllerOf) isWatched(t *testing.T, want bool) {
	t.Helper()
	require.Eventually(t, func() bool { return c.reads() == want }, eventually, often, "%s is watched: %t", c.kind, want)
}

func (c *controllerOf) reads() bool {
	if !c.Acquire() {
		return false
	}
	c.Release()
	return true
}

// names returns the names of the objects in the cache that the index has under name. It fails if the kind has no informer.
func (c *controllerOf) names(t *testing.T, name string) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.operator.env.gvk(c.kind + "List"))
	require.NoError(t, c.operator.mgr.GetCache().List(t.Context(), list, client.MatchingFields{"test": name}))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names
}

// hasInformer reports whether the cache has an informer of the kind.
func (c *controllerOf) hasInformer(t *testing.T) bool {
	t.Helper()
	key := types.NamespacedName{Namespace: c.operator.env.namespace, Name: "none"}
	err := c.operator.mgr.GetCache().Get(t.Context(), key, objectOf(c.operator.env.gvk(c.kind)))
	_, missing := errors.AsType[*cache.ErrResourceNotCached](err)
	return !missing
}

func (c *controllerOf) hasNoInformer(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return !c.hasInformer(t) }, eventually, often, "the informer of %s is removed", c.kind)
}

// noGoroutines waits until no goroutine of this package is left.
func noGoroutines(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<22)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !strings.Contains(string(stacks), "servedkinds.(*Kinds)") && !strings.Contains(string(stacks), "servedkinds.(*definitions)")
	}, eventually, often, "no goroutine is left")
}
