package ownedresources

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
)

// No controllers run: nobody but the test writes.
var controlPlane = controlplanetest.Shared()

// testEnv is a real API server, an owner on it, and an applier that remembers nothing at first.
type testEnv struct {
	client    client.Client // counted
	other     client.Client // somebody else's
	sent     *requests.Count
	namespace string
	owner     *corev1.ConfigMap
	applier   *applier
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	cp := controlPlane(t)
	w := &testEnv{sent: &requests.Count{}, namespace: controlplanetest.Namespace(t, cp), applier: newApplier()}
	var err error
	w.client, err = client.New(w.sent.Wrap(cp.Config()), client.Options{})
	require.NoError(t, err)
	w.other, err = client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	w.owner = w.newOwner(t, "web")
	return w
}

// newOwner takes a ConfigMap for an owner: whatever has a UID may own.
func (w *testEnv) newOwner(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	require.NoError(t, w.other.Create(t.Context(), owner))
	return owner
}

func (w *testEnv) apply(t *testing.T, want client.Object, options ...ChildOption) (Result, error) {
	t.Helper()
	o, err := newOwner(w.owner, w.client)
	require.NoError(t, err)
	children, err := w.applier.declare(&o, []client.Object{want})
	require.NoError(t, err)
	for _, option := range options {
		option(children[0].options)
	}
	w.sent.Sent()
	return w.applier.apply(t.Context(), &o, children[0])
}

// expect applies, and compares what was done and sent besides the read that a cache would serve.
func (w *testEnv) expect(t *testing.T, want client.Object, op Operation, sent ...string) client.Object {
	t.Helper()
	result, err := w.apply(t, want)
	require.NoError(t, err)
	require.Equal(t, op, result.Operation)
	got := w.sent.Sent()
	require.NotEmpty(t, got, "the read of a cache")
	require.Equal(t, sent, slices.Clip(got[1:]))
	return result.Object
}

func (w *testEnv) live(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, w.other.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "web"}, obj))
}

// byHand changes the live object as kubectl edit would.
func byHand[T client.Object](t *testing.T, w *testEnv, obj T, change func(T)) {
	t.Helper()
	w.live(t, obj)
	change(obj)
	require.NoError(t, w.other.Update(t.Context(), obj, client.FieldOwner("kubectl-edit")))
}

var none = []string{}

func (w *testEnv) deployment() *appsv1.Deployment {
	d := NewDeployment(w.owner, map[string]string{"app": "web"}, corev1.Container{
		Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "shop"}},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	})
	d.Spec.Replicas = new(int32(2))
	return d
}

func (w *testEnv) service() *corev1.Service {
	return NewService(w.owner, map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
}

func resourceOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.Deployment:
		return "deployments"
	case *corev1.Service:
		return "services"
	}
	return "configmaps"
}

func (w *testEnv) exists(t *testing.T, obj client.Object) bool {
	t.Helper()
	if obj.GetNamespace() == "" {
		obj.SetNamespace(w.namespace)
	}
	err := w.other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

func ownerOf(t *testing.T, w *testEnv) *owner {
	t.Helper()
	o, err := newOwner(w.owner, w.client)
	require.NoError(t, err)
	return &o
}
