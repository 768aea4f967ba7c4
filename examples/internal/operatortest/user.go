package operatortest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

// User is a test's own access to a namespace, as an administrator.
type User struct {
	client.WithWatch
	ControlPlane *controlplane.ControlPlane
	Namespace    string
}

// NewUser gives a test a namespace of its own, which is deleted when the test ends.
func NewUser(t testing.TB, cp *controlplane.ControlPlane, scheme *runtime.Scheme) *User {
	t.Helper()
	c, err := client.NewWithWatch(cp.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return &User{WithWatch: c, ControlPlane: cp, Namespace: controlplanetest.Namespace(t, cp)}
}

// NewScheme has Kubernetes' own kinds and those that are added.
func NewScheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range append(add, clientgoscheme.AddToScheme) {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// Kubectl runs kubectl in the namespace and gives what it prints.
func (u *User) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := u.ControlPlane.Kubectl(t.Context(), append([]string{"--namespace", u.Namespace}, args...)...)
	require.NoError(t, err)
	return out
}

// Meta is the metadata of an object in the namespace.
func (u *User) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: u.Namespace, Name: name}
}

// Deployment is one of that name, to be read or filled.
func (u *User) Deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: u.Meta(name)}
}

// Service is one of that name, to be read or filled.
func (u *User) Service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: u.Meta(name)}
}

// Endpoints gives the names of the pods that a Service finds.
func (u *User) Endpoints(t require.TestingT, service string) []string {
	var slices discoveryv1.EndpointSliceList
	require.NoError(t, u.List(context.Background(), &slices, client.InNamespace(u.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service}))
	var pods []string
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			pods = append(pods, e.TargetRef.Name)
		}
	}
	return pods
}

// Gone waits until none of the objects exists.
func (u *User) Gone(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		Eventually(t, obj.GetName()+" goes", func(c *assert.CollectT) {
			err := u.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
			assert.NoError(c, client.IgnoreNotFound(err))
			assert.Error(c, err, "%T %s is still there", obj, obj.GetName())
		})
	}
}

// MadeAnew deletes an object and waits until the operator has made another of its name.
func (u *User) MadeAnew(t *testing.T, obj client.Object) {
	t.Helper()
	uid := Live(t, u, obj).GetUID()
	require.NoError(t, u.Delete(t.Context(), obj))
	Eventually(t, obj.GetName()+" is back", func(c *assert.CollectT) {
		assert.NotEqual(c, uid, Live(c, u, obj).GetUID())
	})
}
