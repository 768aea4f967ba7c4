package memoryserver

import (
	"context"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// Reader returns a reader that reads earlier states of the server. Before each read it calls at, and reads the kind at the returned
// revision. So a reader can be behind and catch up. It returns objects with apiVersion and kind, as a controller-runtime cache does.
// Objects that it returns without a copy share memory with each other, and not with the server.
//
// hold returns an object in the form in which the reader returns it, such as with fewer fields. If it returns nil, the reader does not have
// the object. It may change the object that it gets. It is called once for each version that is read. If hold is nil, the reader has all
// objects unchanged.
func (s *Server) Reader(at func(schema.GroupVersionKind) int64, hold func(schema.GroupVersionKind, client.Object) (client.Object, error)) client.Reader {
	if hold == nil {
		hold = func(_ schema.GroupVersionKind, obj client.Object) (client.Object, error) { return obj, nil }
	}
	return &pastReader{server: s, at: at, hold: hold, shared: map[sharedKey]sharedObject{}}
}

type pastReader struct {
	server *Server
	at     func(schema.GroupVersionKind) int64
	hold   func(schema.GroupVersionKind, client.Object) (client.Object, error)

	mu     sync.Mutex
	shared map[sharedKey]sharedObject // the last result of hold for each object
}

type sharedKey struct {
	kind *kind.Kind
	key  client.ObjectKey
	as   reflect.Type
}

// sharedObject is an object on the server, and the result of hold for it. Reads without a copy return that result.
type sharedObject struct{ of, object client.Object } // object is nil if the reader does not have the object

func (r *pastReader) Get(ctx context.Context, key client.ObjectKey, out client.Object, options ...client.GetOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(out, r.server.scheme)
	if err != nil {
		return err
	}
	k, err := r.server.kind(gvk)
	if err != nil {
		return err
	}
	found, err := r.find(k, k.Key(key.Namespace, key.Name), reflect.TypeOf(out))
	if err != nil {
		return err
	}
	held, err := r.share(k, found)
	switch {
	case err != nil:
		return err
	case held == nil:
		return notFound(k, key)
	case !ptr.Deref((&client.GetOptions{}).ApplyOptions(options).UnsafeDisableDeepCopy, false):
		held = held.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(held).Elem())
	return nil
}

// share returns the result of hold for an object, nil if the reader does not have it. It gives a copy to hold, since an operator may change
// the result by mistake: neither this server nor a later server that reuses its results may see the change.
func (r *pastReader) share(k *kind.Kind, found client.Object) (client.Object, error) {
	id := sharedKey{k, client.ObjectKeyFromObject(found), reflect.TypeOf(found)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.shared[id]; known && last.of == found {
		return last.object, nil
	}
	held, err := r.hold(k.GVK, found.DeepCopyObject().(client.Object))
	if err == nil {
		r.shared[id] = sharedObject{found, held}
	}
	return held, err
}

func (r *pastReader) find(k *kind.Kind, key client.ObjectKey, as reflect.Type) (client.Object, error) {
	revision := r.at(k.GVK)
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if rec := r.server.store.table(k).records[key]; rec != nil {
		if v := rec.at(revision); v != nil {
			return r.server.view(k, v, as)
		}
	}
	return nil, notFound(k, key)
}

// notFound returns the "not found" error of a cache. It has the kind where the API server has the resource, since a cache does not know the
// resource's name.
func notFound(k *kind.Kind, key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: k.GVK.Group, Resource: k.GVK.Kind}, key.Name)
}

func (r *pastReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k, as, err := r.server.kindOfList(list)
	if err != nil {
		return err
	}
	all := (&client.ListOptions{}).ApplyOptions(options)
	sel, err := newSelection(k, all)
	if err != nil {
		return err
	}
	revision := r.at(k.GVK)
	r.server.mu.Lock()
	found, err := r.server.list(k, as, sel, revision)
	r.server.mu.Unlock()
	if err != nil {
		return err
	}
	var items []runtime.Object
	for _, object := range found {
		held, err := r.share(k, object)
		if err != nil {
			return err
		}
		if held == nil {
			continue
		}
		if !ptr.Deref(all.UnsafeDisableDeepCopy, false) {
			held = held.DeepCopyObject().(client.Object)
		}
		items = append(items, held)
	}
	return setItems(list, items, revision)
}
