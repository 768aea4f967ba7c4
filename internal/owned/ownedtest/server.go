// Package ownedtest is the environment for tests of the engine: a namespace of a real API server or of a server in memory, an owner, and
// functions that apply one object. Tests of package ownedresources use it too.
package ownedtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

func init() { testkinds.AddShop(scheme.Scheme) }

// Server is a namespace of an API server, with a Shop named "web" as the owner.
type Server struct {
	Plane     *controlplane.ControlPlane // nil for a server in memory
	Client    client.Client              // the operator's client; its requests are counted
	Other     client.Client              // the client of another writer
	Requests  *requests.Count
	Namespace string
	Owner     *testkinds.Shop
	Applier   *apply.Applier // the Applier that the tests call; a new one remembers nothing
}

// others has one client of another writer for each control plane. The tests of a process share it, so that kinds are discovered only once.
var others sync.Map

func otherOf(t *testing.T, plane *controlplane.ControlPlane) client.Client {
	t.Helper()
	if known, ok := others.Load(plane); ok {
		return known.(client.Client)
	}
	other, err := client.New(plane.Config(), client.Options{})
	require.NoError(t, err)
	others.Store(plane, other)
	return other
}

// New returns a new namespace of a control plane, without the owner.
func New(t *testing.T, plane *controlplane.ControlPlane) *Server {
	t.Helper()
	s := newServer(otherOf(t, plane), controlplane.Namespace(t, plane))
	s.Plane = plane
	var err error
	s.Client, err = client.New(s.Requests.Wrap(plane.Config()), client.Options{Mapper: s.Other.RESTMapper()})
	require.NoError(t, err)
	return s
}

// NewWithOwner returns a new namespace of a control plane, with the owner.
func NewWithOwner(t *testing.T, plane *controlplane.ControlPlane) *Server {
	t.Helper()
	s := New(t, plane)
	s.Create(t, s.Owner)
	return s
}

func newServer(other client.Client, namespace string) *Server {
	return &Server{
		Other: other, Requests: &requests.Count{}, Namespace: namespace, Applier: apply.New(),
		Owner: &testkinds.Shop{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}},
	}
}

// Published returns the kinds with the schemas that the API server publishes. It waits until the schema of sample is published, which is a
// moment after the kind is served.
func (s *Server) Published(t *testing.T, sample client.Object) *owned.Kinds {
	t.Helper()
	server, err := discovery.NewDiscoveryClientForConfig(s.Plane.Config())
	require.NoError(t, err)
	kinds := &owned.Kinds{Schemas: applyschema.FromServer(server.OpenAPIV3())}
	require.Eventually(t, func() bool {
		_, err := kinds.Of(sample, s.Client.Scheme())
		return err == nil
	}, controlplane.Patience, 20*time.Millisecond)
	return kinds
}

// NewOwnerNamed creates another owner and returns it.
func (s *Server) NewOwnerNamed(t *testing.T, name string) *testkinds.Shop {
	t.Helper()
	owner := &testkinds.Shop{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	s.Create(t, owner)
	return owner
}

// RereadOwner reads the owner again, as the next reconcile would.
func (s *Server) RereadOwner(t *testing.T) {
	t.Helper()
	require.NoError(t, s.Other.Get(t.Context(), client.ObjectKeyFromObject(s.Owner), s.Owner))
}

// OwnerOf returns the owner as an [owned.Owner].
func (s *Server) OwnerOf(t *testing.T) *owned.Owner {
	t.Helper()
	o, err := owned.NewOwner(s.Owner, s.Client, nil)
	require.NoError(t, err)
	return &o
}

// Create creates an object as another writer.
func (s *Server) Create(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, s.Other.Create(t.Context(), obj))
}

// CreateForTest creates an object without a namespace as another writer, and deletes it when the test ends.
func (s *Server) CreateForTest(t *testing.T, obj client.Object) {
	t.Helper()
	s.Create(t, obj)
	s.DeleteAfter(t, obj)
}

// DeleteAfter deletes an object without a namespace when the test ends. It does not use the context of the test, which has ended then.
func (s *Server) DeleteAfter(t *testing.T, obj client.Object) {
	t.Cleanup(func() { require.NoError(t, s.Other.Delete(context.Background(), obj)) })
}

// Live reads the live object that has the owner's name into obj.
func (s *Server) Live(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, s.Other.Get(t.Context(), types.NamespacedName{Namespace: s.Namespace, Name: "web"}, obj))
}

// Exists reads obj and reports whether it exists. If obj has no namespace, Exists sets the namespace of the Server first.
func (s *Server) Exists(t *testing.T, obj client.Object) bool {
	t.Helper()
	if obj.GetNamespace() == "" {
		obj.SetNamespace(s.Namespace)
	}
	err := s.Other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// ByHand changes the live object that has the owner's name, as kubectl edit does.
func ByHand[T client.Object](t *testing.T, s *Server, obj T, change func(T)) {
	t.Helper()
	s.Live(t, obj)
	change(obj)
	require.NoError(t, s.Other.Update(t.Context(), obj, client.FieldOwner("kubectl-edit")))
}
