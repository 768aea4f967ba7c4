package ownedresources

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// The control planes of the tests. Only the tests write to the objects of controlPlane. On cluster the controllers of
// Kubernetes run.
var (
	controlPlane = controlplane.Shared(controlplane.Options{CRDs: []string{"testdata/shops.yaml"}})
	cluster      = controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"testdata/shops.yaml", "../internal/owned/testkinds/gadgets.yaml", "../internal/owned/testkinds/widgets.yaml"}})
)

// sharedClient returns the same client to all tests, so that kinds are discovered once.
func sharedClient(cp *controlplane.ControlPlane) (client.Client, error) {
	shared.Do(func() { shared.client, shared.err = client.New(cp.Config(), client.Options{}) })
	return shared.client, shared.err
}

var shared struct {
	sync.Once
	client client.Client
	err    error
}

// serverEnv is a namespace of a real API server with a Shop as the owner. It tests one apply, or a set in an operator.
type serverEnv struct {
	plane     *controlplane.ControlPlane
	client    client.Client // the operator's client; its requests are counted
	other     client.Client // the client of somebody else
	sent      *requests.Count
	namespace string
	elsewhere string // another namespace; only of newClusterEnv
	owner     *Shop
	spec      ShopSpec       // what every new owner asks for
	applier   *apply.Applier // it remembers nothing yet
}

// newServerEnv returns a namespace in which no controller writes. The owner exists.
func newServerEnv(t *testing.T) *serverEnv {
	t.Helper()
	plane := controlPlane(t)
	other, err := sharedClient(plane)
	require.NoError(t, err)
	env := newEnvOn(t, plane, other)
	env.create(t, env.owner)
	return env
}

// newClusterEnv returns two namespaces of a control plane with its controllers. The owner does not exist yet; spec
// is what it asks for.
func newClusterEnv(t *testing.T, spec ...ShopSpec) *serverEnv {
	t.Helper()
	plane := cluster(t)
	other, err := client.New(plane.Config(), client.Options{})
	require.NoError(t, err)
	env := newEnvOn(t, plane, other)
	env.elsewhere = controlplane.Namespace(t, plane)
	if len(spec) > 0 {
		env.spec = spec[0]
		env.owner = env.newOwner()
	}
	return env
}

func newEnvOn(t *testing.T, plane *controlplane.ControlPlane, other client.Client) *serverEnv {
	t.Helper()
	env := &serverEnv{plane: plane, other: other, sent: &requests.Count{}, namespace: controlplane.Namespace(t, plane), applier: apply.New()}
	var err error
	env.client, err = client.New(env.sent.Wrap(plane.Config()), client.Options{Mapper: other.RESTMapper()})
	require.NoError(t, err)
	env.owner = env.newOwner()
	return env
}

// newOwner returns an owner that does not exist yet.
func (env *serverEnv) newOwner() *Shop {
	return &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "web"}, Spec: *env.spec.DeepCopy()}
}

// newOwnerNamed returns another owner, which exists.
func (env *serverEnv) newOwnerNamed(t *testing.T, name string) *Shop {
	t.Helper()
	owner := env.newOwner()
	owner.Name = name
	env.create(t, owner)
	return owner
}

// create creates an object as somebody else.
func (env *serverEnv) create(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, env.other.Create(t.Context(), obj))
}

// createForTest creates an object without a namespace as somebody else, and deletes it when the test ends.
func (env *serverEnv) createForTest(t *testing.T, obj client.Object) {
	t.Helper()
	env.create(t, obj)
	env.deleteAfter(t, obj)
}

// deleteAfter deletes an object without a namespace when the test ends. The context of the test has ended by then.
func (env *serverEnv) deleteAfter(t *testing.T, obj client.Object) {
	t.Cleanup(func() { require.NoError(t, env.other.Delete(context.Background(), obj)) })
}

// apply applies want as a child of the owner. It drops the count of the requests before.
func (env *serverEnv) apply(t *testing.T, want client.Object, options ...childOption) (apply.Result, error) {
	t.Helper()
	o, err := owned.NewOwner(env.owner, env.client, nil)
	require.NoError(t, err)
	children, err := env.applier.Declare(&o, []client.Object{want})
	require.NoError(t, err)
	for _, option := range options {
		option(children[0].Options)
	}
	env.sent.Sent()
	return applyOne(t.Context(), env.applier, &o, children[0])
}

// expect applies want and requires an operation and the requests that were sent after the read, which a cache would
// serve. It returns the live object.
func (env *serverEnv) expect(t *testing.T, want client.Object, op apply.Operation, sent ...string) client.Object {
	t.Helper()
	result, err := env.apply(t, want)
	require.NoError(t, err)
	require.Equal(t, op, result.Operation)
	got := env.sent.Sent()
	require.NotEmpty(t, got, "the read of a cache")
	require.Equal(t, sent, slices.Clip(got[1:]))
	return result.Object
}

// live reads the object that is named as its owner.
func (env *serverEnv) live(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, env.other.Get(t.Context(), types.NamespacedName{Namespace: env.namespace, Name: "web"}, obj))
}

// byHand changes the object that is named as its owner, as kubectl edit does.
func byHand[T client.Object](t *testing.T, env *serverEnv, obj T, change func(T)) {
	t.Helper()
	env.live(t, obj)
	change(obj)
	require.NoError(t, env.other.Update(t.Context(), obj, client.FieldOwner("kubectl-edit")))
}

// none is for expect: no request but the read.
var none = []string{}

func (env *serverEnv) deployment() *appsv1.Deployment {
	d := NewDeployment(env.owner, map[string]string{"app": "web"}, corev1.Container{
		Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	})
	d.Spec.Replicas = new(int32(2))
	return d
}

func (env *serverEnv) service() *corev1.Service {
	return NewService(env.owner, map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
}

// resourceOf returns the resource in the requests for an object.
func resourceOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.Deployment:
		return "deployments"
	case *corev1.Service:
		return "services"
	}
	return "configmaps"
}

// exists reads obj, in the owner's namespace unless it has one, and reports whether it exists.
func (env *serverEnv) exists(t *testing.T, obj client.Object) bool {
	t.Helper()
	if obj.GetNamespace() == "" {
		obj.SetNamespace(env.namespace)
	}
	err := env.other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

func ownerOf(t *testing.T, env *serverEnv) *owned.Owner {
	t.Helper()
	o, err := owned.NewOwner(env.owner, env.client, nil)
	require.NoError(t, err)
	return &o
}

func reasonOf(wait *owned.WaitingError) string {
	reason, _ := wait.Waiting()
	return reason
}

func delayOf(wait *owned.WaitingError) time.Duration {
	_, after := wait.Waiting()
	return after
}

// applyOne creates or applies one object, if needed.
func applyOne(ctx context.Context, a *apply.Applier, o *owned.Owner, child owned.Declared) (apply.Result, error) {
	results, err := apply.All(ctx, a, o, []owned.Declared{child})
	return results[0], err
}
