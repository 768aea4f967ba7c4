package ownedtest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// NewInMemory returns a new server in memory, with the namespace default. The server knows the kinds of Kubernetes, and the kinds that are
// defined in these files or folders. The owner exists. The server has the schemas, the defaults and the field managers of a real API
// server, but no admission plug-ins and not all of the validation.
func NewInMemory(t *testing.T, crds ...string) *Server {
	t.Helper()
	s := newServer(reconciletest.NewClient(t, scheme.Scheme, crds...), metav1.NamespaceDefault)
	s.Client = counted{Client: s.Other, requests: s.Requests}
	s.Create(t, s.Owner)
	return s
}

// counted is a client of a server in memory. It counts its requests as [requests.Count] does for a real API server.
type counted struct {
	client.Client
	requests *requests.Count
}

func (c counted) count(verb string, obj runtime.Object) {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return
	}
	if mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		c.requests.Add(verb + " " + mapping.Resource.Resource)
	}
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.count("GET", obj)
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c counted) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.count("POST", obj)
	return c.Client.Create(ctx, obj, opts...)
}

func (c counted) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	c.count("PUT", obj)
	return c.Client.Update(ctx, obj, opts...)
}

func (c counted) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	c.count("PATCH", obj)
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c counted) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	c.count("DELETE", obj)
	return c.Client.Delete(ctx, obj, opts...)
}
