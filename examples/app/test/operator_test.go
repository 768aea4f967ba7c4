// Package test runs the app operator on a real control plane.
package test

import (
	"context"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
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
	sampleFile    = "../config/samples/app_v1_app.yaml"
	sampleName    = "nginx-app"

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
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appv1.AddToScheme} {
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

func (u *user) app(name string) *appv1.App {
	return &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
}

// create creates an App as a user would, with what the edits say.
func (u *user) create(t *testing.T, name string, edits ...func(*appv1.AppSpec)) *appv1.App {
	t.Helper()
	app := u.app(name)
	app.Spec = appv1.AppSpec{
		Replicas: new(int32(1)),
		Image:    "nginx:1.16.1",
		Ports:    []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}},
	}
	for _, edit := range edits {
		edit(&app.Spec)
	}
	require.NoError(t, u.Create(t.Context(), app))
	return app
}

// read reads an object as it is, with nothing left of what it was.
func (u *user) read(ctx context.Context, obj client.Object) error {
	key := client.ObjectKeyFromObject(obj)
	reflect.ValueOf(obj).Elem().SetZero()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return u.Get(ctx, key, obj)
}

// live is read, for an object that must be there.
func live[T client.Object](t require.TestingT, u *user, obj T) T {
	require.NoError(t, u.read(context.Background(), obj))
	return obj
}

// set edits an App's spec.
func (u *user) set(t *testing.T, name string, edit func(*appv1.AppSpec)) {
	t.Helper()
	change(t, u, u.app(name), func(app *appv1.App) { edit(&app.Spec) })
}

// change edits any object by a merge patch, like kubectl edit.
func change[T client.Object](t *testing.T, u *user, obj T, edit func(T)) {
	t.Helper()
	before := live(t, u, obj).DeepCopyObject().(T)
	edit(obj)
	require.NoError(t, u.Patch(t.Context(), obj, client.MergeFrom(before)))
}

func (u *user) deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
}

func (u *user) service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
}

func (u *user) budget(name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
}

// rollouts is how many versions of the pods there have been.
func (u *user) rollouts(t *testing.T, name string) int {
	t.Helper()
	var list appsv1.ReplicaSetList
	require.NoError(t, u.List(t.Context(), &list, client.InNamespace(u.namespace), client.MatchingLabels{"app.example.com/v1": name}))
	return len(list.Items)
}

// eventually waits until everything that is asserted holds.
func eventually(t *testing.T, what string, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, patience, interval, what)
}

// settled waits until the status is about the present spec, and Ready or not as expected, and gives the object.
func (u *user) settled(t *testing.T, name string, ready corev1.ConditionStatus) *appv1.App {
	t.Helper()
	app := u.app(name)
	eventually(t, "Ready is "+string(ready), func(c *assert.CollectT) {
		require.NoError(c, u.read(t.Context(), app))
		assert.Equal(c, app.Generation, app.Status.ObservedGeneration)
		got, _ := controller.Conditions.Get(app.Status.Conditions, conditions.Ready)
		assert.Equal(c, ready, got.Status, "%s: %s", got.Reason, got.Message)
	})
	return app
}

// condition waits until a condition has that reason, and gives it.
func (u *user) condition(t *testing.T, name, conditionType, reason string) appsv1.DeploymentCondition {
	t.Helper()
	var got appsv1.DeploymentCondition
	app := u.app(name)
	eventually(t, conditionType+" is "+reason, func(c *assert.CollectT) {
		require.NoError(c, u.read(t.Context(), app))
		got, _ = controller.Conditions.Get(app.Status.Conditions, conditionType)
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
			goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"), // of the test's own clients
			// client-go's metadata client leaves one behind for a watch that is stopped while an event is on its way.
			goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
	})
	t.Cleanup(o.stop)
	require.True(t, mgr.GetCache().WaitForCacheSync(t.Context()))
	return o
}

// observed is what the operator does, seen from its client.
type observed struct {
	mu       sync.Mutex
	passes   map[string]int            // begun, by the object's name
	onCreate func(client.Object) error // before the operator creates something; an error is the answer
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
	if _, ok := obj.(*appv1.App); ok {
		c.mu.Lock()
		c.passes[key.Name]++
		c.mu.Unlock()
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *observedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.mu.Lock()
	onCreate := c.onCreate
	c.mu.Unlock()
	if onCreate != nil {
		if err := onCreate(obj); err != nil {
			return err
		}
	}
	return c.Client.Create(ctx, obj, opts...)
}
