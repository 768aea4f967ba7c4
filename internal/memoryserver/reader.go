package memoryserver

import (
	"context"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// Reader returns a reader of the past. It calls at before each read and reads the kind as it was at that revision, so a
// reader can fall behind and catch up. It returns objects as a controller-runtime cache does, with apiVersion and kind. Those that
// it gets without a copy share memory with each other, and not with the server.
func (s *Server) Reader(at func(schema.GroupVersionKind) int64) client.Reader {
	return &pastReader{server: s, at: at, shared: map[sharedKey]sharedObject{}}
}

type pastReader struct {
	server *Server
	at     func(schema.GroupVersionKind) int64

	mu     sync.Mutex
	shared map[sharedKey]sharedObject // what the last read without a copy returned
}

type sharedKey struct {
	kind *kind.Kind
	key  client.ObjectKey
	as   reflect.Type
}

// sharedObject is an object as reads without a copy return it.
type sharedObject struct{ of, object client.Object } // on the server; the reader's copy

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
	if ptr.Deref((&client.GetOptions{}).ApplyOptions(options).UnsafeDisableDeepCopy, false) {
		found = r.share(sharedKey{k, client.ObjectKeyFromObject(found), reflect.TypeOf(out)}, found)
	} else {
		found = found.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// share returns the reader's copy of an object. An operator may change it by mistake. Neither the server may see that, nor those that
// follow it.
func (r *pastReader) share(id sharedKey, found client.Object) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.shared[id]; last.of == found {
		return last.object
	}
	made := sharedObject{found, found.DeepCopyObject().(client.Object)}
	r.shared[id] = made
	return made.object
}

func (r *pastReader) find(k *kind.Kind, key client.ObjectKey, as reflect.Type) (client.Object, error) {
	revision := r.at(k.GVK)
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if rec := r.server.store.table(k).records[key]; rec != nil {
		if v := rec.at(revision); v != nil {
			return v.view(k, as)
		}
	}
	// A cache does not know the resource's name: its error has the kind instead.
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: k.GVK.Group, Resource: k.GVK.Kind}, key.Name)
}

func (r *pastReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k, as, err := r.server.kindOfList(list)
	if err != nil {
		return err
	}
	sel, err := newSelection(k, (&client.ListOptions{}).ApplyOptions(options))
	if err != nil {
		return err
	}
	revision := r.at(k.GVK)
	r.server.mu.Lock()
	found, err := r.server.store.list(k, as, sel, revision)
	r.server.mu.Unlock()
	if err != nil {
		return err
	}
	return fill(list, found, revision, true)
}
