package operatortest

import (
	"context"
	"slices"
	"sync"
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

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// User is the access of the test itself to a namespace, as an administrator.
type User struct {
	client.WithWatch
	ControlPlane *controlplane.ControlPlane
	Namespace    string
}

// NewUser creates a namespace for a test, which is deleted when the test ends.
func NewUser(t testing.TB, cp *controlplane.ControlPlane, scheme *runtime.Scheme) *User {
	t.Helper()
	return &User{WithWatch: administrator(t, cp, scheme), ControlPlane: cp, Namespace: controlplane.Namespace(t, cp)}
}

// administrators are the clients of all users. Each new client would ask the API server again which kinds it serves.
var administrators = struct {
	sync.Mutex
	clients map[access]client.WithWatch
}{clients: map[access]client.WithWatch{}}

type access struct {
	cp     *controlplane.ControlPlane
	scheme *runtime.Scheme
}

// administrator returns an administrator's client, the same for the same control plane and scheme.
func administrator(t testing.TB, cp *controlplane.ControlPlane, scheme *runtime.Scheme) client.WithWatch {
	t.Helper()
	administrators.Lock()
	defer administrators.Unlock()
	key := access{cp, scheme}
	if c, known := administrators.clients[key]; known {
		return c
	}
	c, err := client.NewWithWatch(cp.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	administrators.clients[key] = c
	return c
}

// NewScheme returns a scheme with the kinds of Kubernetes and those that are added.
func NewScheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range append(add, clientgoscheme.AddToScheme) {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// Kubectl runs kubectl in the namespace and returns its output.
func (u *User) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := u.ControlPlane.Kubectl(t.Context(), append([]string{"--namespace", u.Namespace}, args...)...)
	require.NoError(t, err)
	return out
}

// Meta returns the metadata of an object in the namespace.
func (u *User) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: u.Namespace, Name: name}
}

// Deployment returns an empty Deployment of a name, to read into or to fill.
func (u *User) Deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: u.Meta(name)}
}

// Service returns an empty Service of a name, to read into or to fill.
func (u *User) Service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: u.Meta(name)}
}

// Endpoints returns the names of the pods behind a Service.
func (u *User) Endpoints(t require.TestingT, service string) []string {
	var list discoveryv1.EndpointSliceList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service}))
	var pods []string
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			pods = append(pods, e.TargetRef.Name)
		}
	}
	return pods
}

// PodNames returns the names of the pods with some labels, sorted, without those that are terminating.
func (u *User) PodNames(t require.TestingT, labels client.MatchingLabels) []string {
	var list corev1.PodList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace), labels))
	names := []string{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// Rollouts returns the number of different pod templates that a Deployment's pods, which have some labels, have had.
func (u *User) Rollouts(t require.TestingT, labels client.MatchingLabels) int {
	var list appsv1.ReplicaSetList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace), labels))
	return len(list.Items)
}

// Gone waits until none of the objects exists any more.
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

// DeleteAndAwaitNew deletes an object and waits until the operator has created another one of its name.
func (u *User) DeleteAndAwaitNew(t *testing.T, obj client.Object) {
	t.Helper()
	uid := Live(t, u, obj).GetUID()
	require.NoError(t, u.Delete(t.Context(), obj))
	Eventually(t, obj.GetName()+" is back", func(c *assert.CollectT) {
		assert.NotEqual(c, uid, Live(c, u, obj).GetUID())
	})
}
