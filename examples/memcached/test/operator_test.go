// Package test runs the memcached operator on a real control plane.
package test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

var (
	// cluster has all controllers and simulated nodes; on apiServer nobody but us writes anything.
	cluster   = withCRD(controlplanetest.Shared(controlplane.WithControllers()))
	apiServer = withCRD(controlplanetest.Shared())
)

const (
	configDefault = "../config/default"
	crds          = "../config/crd/bases"
	sampleFile    = "../config/samples/cache_v1alpha1_memcached.yaml"
	sampleName    = "memcached-sample"

	// patience is for what should happen at once, on a machine that is busy with other tests.
	patience = 30 * time.Second
	interval = 20 * time.Millisecond
)

// withCRD installs the CRD once.
func withCRD(start func(testing.TB) *controlplane.ControlPlane) func(testing.TB) *controlplane.ControlPlane {
	var once sync.Once
	return func(t testing.TB) *controlplane.ControlPlane {
		t.Helper()
		cp := start(t)
		once.Do(func() {
			paths, err := filepath.Glob(crds + "/*.yaml")
			require.NoError(t, err)
			require.NoError(t, cp.InstallCRDs(context.Background(), paths...))
		})
		return cp
	}
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cachev1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// user is the test's own access to one namespace, as an administrator.
type user struct {
	client.WithWatch
	cp        *controlplane.ControlPlane
	namespace string
}

func newUser(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	c, err := client.NewWithWatch(cp.Config(), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	return &user{WithWatch: c, cp: cp, namespace: controlplanetest.Namespace(t, cp)}
}

// kubectl runs kubectl in the namespace.
func (u *user) kubectl(ctx context.Context, args ...string) (string, error) {
	return u.cp.Kubectl(ctx, append([]string{"--namespace", u.namespace}, args...)...)
}

func (u *user) memcached(name string, size int32) *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name},
		Spec:       cachev1alpha1.MemcachedSpec{Size: size},
	}
}

// create creates a Memcached as a user would.
func (u *user) create(t *testing.T, name string, size int32) *cachev1alpha1.Memcached {
	t.Helper()
	m := u.memcached(name, size)
	require.NoError(t, u.Create(t.Context(), m))
	return m
}

// change edits any object by a merge patch, like kubectl edit.
func change[T client.Object](t *testing.T, u *user, obj T, edit func(T)) {
	t.Helper()
	require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopyObject().(T)
	edit(obj)
	require.NoError(t, u.Patch(t.Context(), obj, client.MergeFrom(before)))
}

func (u *user) deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
}

func (u *user) service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
}

// pods gives the names of a Memcached's pods, sorted as the API server sorts them, without those that are terminating.
func (u *user) pods(ctx context.Context, name string) ([]string, error) {
	var list corev1.PodList
	err := u.List(ctx, &list, client.InNamespace(u.namespace), client.MatchingLabels{"memcached_cr": name})
	names := []string{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, err
}

// eventually waits until everything that is asserted holds.
func eventually(t *testing.T, what string, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, patience, interval, what)
}

// settled waits until the status is about the present spec, and Ready or not as expected, and gives the object.
func (u *user) settled(t *testing.T, name string, ready metav1.ConditionStatus) *cachev1alpha1.Memcached {
	t.Helper()
	m := u.memcached(name, 0)
	eventually(t, "Ready is "+string(ready), func(c *assert.CollectT) {
		require.NoError(c, u.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		assert.Equal(c, m.Generation, m.Status.ObservedGeneration)
		got, _ := conditions.Get(m.Status.Conditions, conditions.Ready)
		assert.Equal(c, ready, got.Status, "%s: %s", got.Reason, got.Message)
	})
	return m
}

// condition waits until a condition has that reason, and gives it.
func (u *user) condition(t *testing.T, name, conditionType, reason string) metav1.Condition {
	t.Helper()
	var got metav1.Condition
	m := u.memcached(name, 0)
	eventually(t, conditionType+" is "+reason, func(c *assert.CollectT) {
		require.NoError(c, u.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		got, _ = conditions.Get(m.Status.Conditions, conditionType)
		assert.Equal(c, reason, got.Reason, "%s: %s", got.Status, got.Message)
	})
	return got
}

// gone waits until none of the objects exists.
func (u *user) gone(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		eventually(t, "it is gone", func(c *assert.CollectT) {
			err := u.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
			assert.NoError(c, client.IgnoreNotFound(err))
			assert.Error(c, err, "%T %s is still there", obj, obj.GetName())
		})
	}
}

// operator is the operator at work in this process, wired as in main.go.
type operator struct {
	requests *operatortest.Requests
	observed *observed
	stop     func()
}

// startOperator starts the operator for some namespaces; it is stopped when the test ends.
func startOperator(t *testing.T, access *rest.Config, options ctrl.Options, namespaces ...string) *operator {
	t.Helper()
	o := &operator{requests: &operatortest.Requests{}, observed: &observed{passes: map[string]int{}}}
	options.Scheme = newScheme()
	options.Logger = operatorLogger(t)
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller = config.Controller{SkipNameValidation: new(true)} // several in one process
	options.NewClient = o.observed.newClient
	if options.Cache.ByObject == nil {
		options.Cache = controller.Cache(namespaces...)
	}
	mgr, err := ctrl.NewManager(o.requests.Count(access), options)
	require.NoError(t, err)
	require.NoError(t, controller.SetupWithManager(mgr))

	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
		utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport)
		goleak.VerifyNone(t, before,
			goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop")) // of the test's own clients
	})
	t.Cleanup(o.stop)
	require.True(t, mgr.GetCache().WaitForCacheSync(t.Context()))
	return o
}

// observed is what the operator does, seen from its client.
type observed struct {
	mu       sync.Mutex
	passes   map[string]int      // begun, by the object's name
	onCreate func(client.Object) // after the operator has created something
}

func (o *observed) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(config, options)
	return &observedClient{c, o}, err
}

func (o *observed) count(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.passes[name]
}

type observedClient struct {
	client.Client
	*observed
}

func (c *observedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*cachev1alpha1.Memcached); ok {
		c.mu.Lock()
		c.passes[key.Name]++
		c.mu.Unlock()
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *observedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	err := c.Client.Create(ctx, obj, opts...)
	c.mu.Lock()
	onCreate := c.onCreate
	c.mu.Unlock()
	if err == nil && onCreate != nil {
		onCreate(obj)
	}
	return err
}
