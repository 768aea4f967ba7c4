package set

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// validateAnywhere returns what is wrong with an object of a child with the option Anywhere, before it is read or written. It sets the
// owner's namespace on an object without one, and removes the namespace of a cluster-scoped object.
func (s *Set) validateAnywhere(ctx context.Context, o *owned.Owner, d *owned.Declared) error {
	obj, k := d.Object, d.Kind
	if obj.GetName() == "" {
		return owned.ErrNoName(k)
	}
	namespaced, known, err := s.Applier.IsNamespaced(o, k, obj)
	switch {
	case err != nil:
		return err
	case known && !namespaced:
		obj.SetNamespace("")
	case obj.GetNamespace() == "":
		if o.Namespace == "" && known {
			return fmt.Errorf("%s has no namespace, and its owner %s is cluster-scoped: set a namespace", k.Describe(obj), o)
		}
		obj.SetNamespace(o.Namespace)
	}
	if err := o.CheckIsAnother(k, obj); err != nil {
		return err
	}
	if !s.covers(ctx, s.Known().sampleOf(k.GVK), k.GVK, client.ObjectKeyFromObject(obj)) {
		return fmt.Errorf("%s is in a namespace that the operator's cache does not cover, so no event of it would arrive: "+
			"choose another namespace, or add it to Cache.DefaultNamespaces of the manager's options", k.Describe(obj))
	}
	if !slices.ContainsFunc(o.Finalizers, func(f string) bool { return slices.Contains(o.Object.GetFinalizers(), f) }) {
		return fmt.Errorf("%s would stay when %s is deleted, which has no finalizer %s: add the finalizer first, as package reconcile does",
			k.Describe(obj), o, o.Finalizers[0])
	}
	return nil
}

// coverage is the key under which a result of the method covers is kept: a kind and a namespace.
type coverage struct {
	sample    any // the pointer to an empty object of the kind
	namespace string
}

// covers reports whether the operator's cache holds objects in the namespace of name. If that is not known, it reports true: the read that
// follows then fails. covers sends no request.
func (s *Set) covers(ctx context.Context, sample client.Object, gvk schema.GroupVersionKind, name client.ObjectKey) bool {
	if s.Cache == nil || name.Namespace == "" {
		return true
	}
	key := coverage{sample, name.Namespace}
	if known, ok := s.coverage.Load(key); ok {
		return known.(bool)
	}
	if w := s.Served[gvk]; w != nil { // a read of a kind that is not served would start an informer and block
		if !w.Acquire() {
			return true
		}
		defer w.Release()
	}
	err := s.Cache.Get(ctx, name, sample.DeepCopyObject().(client.Object), hashedvalues.AsHashed)
	covered := err == nil || !strings.Contains(err.Error(), "unknown namespace for the cache") // controller-runtime has no type for it
	if !covered || client.IgnoreNotFound(err) == nil {
		s.coverage.Store(key, covered)
	}
	return covered
}

// enqueueMarked returns a handler for children without an owner reference. It enqueues the owner that the annotations of the child name. If
// the owner is in a namespace that the cache does not hold, the owner belongs to another installation of the operator, and is not enqueued.
// For a kind whose objects always have an owner reference, enqueueMarked returns nil.
func (s *Set) enqueueMarked(mgr ctrl.Manager, owner client.Object, gvk schema.GroupVersionKind) (handler.EventHandler, error) {
	ownerKind, err := apiutil.GVKForObject(owner, mgr.GetScheme())
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", owner, err)
	}
	if !slices.ContainsFunc(s.Children, func(c *Child) bool {
		kind, err := apiutil.GVKForObject(c.Sample, mgr.GetScheme())
		return err == nil && kind == gvk && (c.Options.Anywhere || c.Options.Retain != nil)
	}) {
		return nil, nil
	}
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		m, marked := record.MarkOf(obj, gvk.GroupKind())
		if !marked || m.Owner.Kind != ownerKind.GroupKind() || !s.covers(ctx, owner, ownerKind, m.Owner.NamespacedName) {
			return nil
		}
		return []ctrl.Request{{NamespacedName: m.Owner.NamespacedName}}
	}), nil
}
