package memoryserver

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// liveClient is a client of the server without a cache. It behaves like controller-runtime's client.
type liveClient struct {
	server *Server
	note   func(schema.GroupVersionKind) // is called with the kind of each request
}

var _ client.WithWatch = (*liveClient)(nil)

func (c *liveClient) Scheme() *runtime.Scheme     { return c.server.scheme }
func (c *liveClient) RESTMapper() meta.RESTMapper { return c.server.kinds.mapper }

func (c *liveClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.server.scheme)
}

func (c *liveClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.server.scheme, c.server.kinds.mapper)
}

func (c *liveClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k, key, err := c.lookup(ctx, obj, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	found, err := c.get(k, key, reflect.TypeOf(obj))
	if err != nil {
		return err
	}
	copyInto(obj, found)
	return nil
}

func (c *liveClient) get(k *kind.Kind, key client.ObjectKey, as reflect.Type) (client.Object, error) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if v := c.server.store.find(k, key); v != nil {
		return c.server.view(k, v, as)
	}
	return nil, apierrors.NewNotFound(k.GroupResource(), key.Name)
}

func (c *liveClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k, as, err := c.kindOfList(list)
	if err != nil {
		return err
	}
	sel, err := newSelection(k, (&client.ListOptions{}).ApplyOptions(options))
	if err != nil {
		return err
	}
	c.server.mu.Lock()
	revision := c.server.store.revision()
	found, err := c.server.list(k, as, sel, revision)
	c.server.mu.Unlock()
	if err != nil {
		return err
	}
	return fill(list, found, revision)
}

func (c *liveClient) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	if err := metadataOnly(obj, "create"); err != nil {
		return err
	}
	k, err := c.kindOf(ctx, obj)
	if err != nil {
		return err
	}
	namespace := obj.GetNamespace()
	if k.Namespaced && namespace == "" {
		return fmt.Errorf("an empty namespace may not be set during creation")
	}
	o := (&client.CreateOptions{}).ApplyOptions(options)
	w := newWriteOptions(o.FieldManager, o.DryRun, o.FieldValidation)
	return c.write(k, obj, w.strict, func(sent client.Object) (client.Object, error) {
		return c.server.create(k, namespace, sent, w)
	})
}

// write decodes the object of a request, calls do while it holds the lock, and writes the returned object into obj.
func (c *liveClient) write(k *kind.Kind, obj client.Object, strict bool, do func(sent client.Object) (client.Object, error)) error {
	sent, err := decodeRequest(k, obj, strict)
	if err != nil {
		return err
	}
	c.server.mu.Lock()
	stored, err := do(sent)
	c.server.mu.Unlock()
	if err != nil {
		return asStatus(err)
	}
	return c.respond(k, stored, obj)
}

func (c *liveClient) Update(ctx context.Context, obj client.Object, options ...client.UpdateOption) error {
	o := (&client.UpdateOptions{}).ApplyOptions(options)
	return c.update(ctx, obj, "", newWriteOptions(o.FieldManager, o.DryRun, o.FieldValidation))
}

func (c *liveClient) update(ctx context.Context, obj client.Object, subresource string, w writeOptions) error {
	if err := metadataOnly(obj, "update"); err != nil {
		return err
	}
	defer keepKind(obj)()
	k, key, err := c.lookup(ctx, obj, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return err
	}
	if err := requireSubresource(k, subresource, key.Name); err != nil {
		return err
	}
	return c.write(k, obj, w.strict, func(sent client.Object) (client.Object, error) {
		return c.server.update(k, key, subresource, sent, w)
	})
}

func (c *liveClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	o := (&client.PatchOptions{}).ApplyOptions(options)
	if err := validatePatchOptions(patch.Type(), o.FieldManager, o.Force); err != nil {
		return err
	}
	w := newWriteOptions(o.FieldManager, o.DryRun, o.FieldValidation)
	w.force = ptr.Deref(o.Force, false)
	return c.patch(ctx, obj, obj, "", patch, w)
}

func (c *liveClient) patch(ctx context.Context, obj, body client.Object, subresource string, patch client.Patch, w writeOptions) error {
	defer keepKind(body)()
	k, key, err := c.lookup(ctx, obj, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return err
	}
	content, err := patch.Data(body)
	if err != nil {
		return err
	}
	if err := requireSubresource(k, subresource, key.Name); err != nil {
		return err
	}
	c.server.mu.Lock()
	stored, err := c.server.patchOrApply(k, key, subresource, patch.Type(), content, w)
	c.server.mu.Unlock()
	if err != nil {
		return asStatus(err)
	}
	return c.respond(k, stored, body)
}

func (s *Server) patchOrApply(k *kind.Kind, key client.ObjectKey, subresource string, patchType types.PatchType, content []byte, w writeOptions) (client.Object, error) {
	if patchType == types.ApplyYAMLPatchType {
		return s.apply(k, key, subresource, content, w)
	}
	return s.patch(k, key, subresource, patchType, content, w)
}

func (c *liveClient) Delete(ctx context.Context, obj client.Object, options ...client.DeleteOption) error {
	k, key, err := c.lookup(ctx, obj, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return err
	}
	o := (&client.DeleteOptions{}).ApplyOptions(options).AsDeleteOptions()
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return asStatus(c.server.deleteAdmitted(k, key, o))
}

func (c *liveClient) DeleteAllOf(ctx context.Context, obj client.Object, options ...client.DeleteAllOfOption) error {
	k, err := c.kindOf(ctx, obj)
	if err != nil {
		return err
	}
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(options)
	sel, err := newSelection(k, &o.ListOptions)
	if err != nil {
		return err
	}
	if k.Namespaced && sel.namespace == "" {
		return errMethodNotAllowed // a collection is deleted in one namespace at a time
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	for _, r := range c.server.store.table(k).order {
		v := r.latest()
		if v == nil {
			continue
		}
		obj, err := c.server.objectIn(k, v)
		if err != nil {
			return asStatus(err)
		}
		if sel.matches(obj) {
			if err := c.server.deleteAdmitted(k, r.key, o.AsDeleteOptions()); err != nil {
				return asStatus(err)
			}
		}
	}
	return nil
}

// keepKind returns a function that restores the apiVersion and kind of obj. Controller-runtime's client keeps them in every write except a
// creation.
func keepKind(obj client.Object) func() {
	gvk := obj.GetObjectKind().GroupVersionKind()
	return func() {
		if !gvk.Empty() {
			obj.GetObjectKind().SetGroupVersionKind(gvk)
		}
	}
}
