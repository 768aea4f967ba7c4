package ownedresources

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/opblocks/opblocks/internal/record"
)

// Anywhere allows the child's objects to be in other namespaces than the owner, and to be cluster-scoped. The garbage
// collector deletes such objects at once if they have an owner reference to a namespaced owner. So they carry a mark
// instead: the label opblocks.dev/owner-uid and annotations that name the owner. Objects in the owner's own namespace
// carry it too. Their events trigger a reconcile of the owner.
//
// They are deleted in the owner's Finalize, for which the owner has a finalizer: see [ChildSet.FinalizerName]. That
// holds also if the owner is deleted while the operator is down. If an owner was removed by force, together with its
// finalizer, the set of the next owner of its name deletes what is left of it, and waits until it is gone.
//
// An object is deleted only if its mark names the object itself, and an owner that the API server shows to be deleted
// or that does not desire the object any more. Its managed fields must also name the operator's field manager. So a
// copy, such as one that a backup restored under another name, is left alone. So is an object that another owner made:
// the error is an [*OwnershipError].
//
// The operator's cache has to cover the namespaces (Cache.DefaultNamespaces of the manager's options), and its role has
// to allow what it does there. An object in any other namespace is refused with an error. If a namespace is being
// deleted, the set waits until it is gone.
//
// If the owner is deleted with orphan propagation (kubectl delete --cascade=orphan), the objects stay and lose their
// mark. The API server shows the orphan propagation only until the garbage collector has finished, which takes
// milliseconds. An operator that is down at that time deletes the objects.
//
// Limits: an operator that is deleted together with the owners leaves their finalizers behind, so delete the owners
// first. A release that does not use the option any more neither deletes such objects nor removes the finalizer: keep a
// [Build] with the option that returns nil as long as there are owners from before.
func Anywhere() ChildOption {
	return func(o *childOptions) { o.anywhere = true }
}

// terminatingNamespaceDelay is the delay before an object is tried again if its namespace is being deleted.
const terminatingNamespaceDelay = 10 * time.Second

// validateAnywhere finds what is wrong with an object of a child with the option Anywhere, before any request. It sets
// the owner's namespace on an object without one, and removes the namespace of a cluster-scoped object.
func (s *set) validateAnywhere(ctx context.Context, o *owner, d *declared) error {
	obj, k := d.object, d.kind
	if obj.GetName() == "" {
		return fmt.Errorf("%s has no name: set one", k.gvk.Kind)
	}
	namespaced, known, err := s.applier.isNamespaced(o, k, obj)
	switch {
	case err != nil:
		return err
	case known && !namespaced:
		obj.SetNamespace("")
	case obj.GetNamespace() == "":
		if o.namespace == "" && known {
			return fmt.Errorf("%s has no namespace, and its owner %s is cluster-scoped: set a namespace", k.describe(obj), o)
		}
		obj.SetNamespace(o.namespace)
	}
	if !s.covers(ctx, s.sampleOf(k.gvk), k.gvk, client.ObjectKeyFromObject(obj)) {
		return fmt.Errorf("%s is in a namespace that the operator's cache does not cover, so no event of it would arrive: "+
			"choose another namespace, or add it to Cache.DefaultNamespaces of the manager's options", k.describe(obj))
	}
	if !slices.ContainsFunc(o.finalizers, func(f string) bool { return slices.Contains(o.object.GetFinalizers(), f) }) {
		return fmt.Errorf("%s would stay when %s is deleted, which has no finalizer %s: add the finalizer first, as package reconcile does",
			k.describe(obj), o, o.finalizers[0])
	}
	return nil
}

// sampleOf returns the sample of the child of a kind: what the set watches.
func (s *set) sampleOf(gvk schema.GroupVersionKind) client.Object {
	known := s.kinds.Load()
	for i, k := range known.kinds {
		if k.gvk == gvk {
			return s.children[i].sample
		}
	}
	return nil
}

// coverage is a namespace of a kind.
type coverage struct {
	sample    any // the pointer to an empty object of the kind
	namespace string
}

// covers reports whether the operator's cache covers the namespace of an object. A namespace that cannot be checked
// counts as covered: then the read that follows fails. It sends no request.
func (s *set) covers(ctx context.Context, sample client.Object, gvk schema.GroupVersionKind, name client.ObjectKey) bool {
	if s.cache == nil || name.Namespace == "" {
		return true
	}
	key := coverage{sample, name.Namespace}
	if known, ok := s.applier.coverage.Load(key); ok {
		return known.(bool)
	}
	if w := s.served[gvk]; w != nil { // a read of a kind that is not served would start an informer and block
		if !w.Acquire() {
			return true
		}
		defer w.Release()
	}
	err := s.cache.Get(ctx, name, sample.DeepCopyObject().(client.Object))
	covered := err == nil || !strings.Contains(err.Error(), "unknown namespace for the cache") // controller-runtime has no type for it
	if !covered || client.IgnoreNotFound(err) == nil {
		s.applier.coverage.Store(key, covered)
	}
	return covered
}

// isAnywhere reports whether objects of a kind may be outside of the owner's namespace.
func (s *set) isAnywhere(gvk schema.GroupVersionKind) bool {
	return s.hasOption(gvk, func(o *childOptions) bool { return o.anywhere })
}

// isMarked reports whether objects of a kind may be without an owner reference.
func (s *set) isMarked(gvk schema.GroupVersionKind) bool {
	return s.hasOption(gvk, func(o *childOptions) bool { return o.anywhere || o.retain != nil })
}

// hasOption reports whether the options of a child of a kind satisfy a function. Call it after the set has looked up
// its kinds.
func (s *set) hasOption(gvk schema.GroupVersionKind, is func(*childOptions) bool) bool {
	for i, k := range s.kinds.Load().kinds {
		if k.gvk.GroupKind() == gvk.GroupKind() && is(&s.children[i].options) {
			return true
		}
	}
	return false
}

// enqueueMarked returns a handler that enqueues the owner that a child's mark names. It does not enqueue an owner in a
// namespace that the cache does not cover: another installation of the operator has it. It returns nil for a kind whose
// objects always have an owner reference.
func (s *set) enqueueMarked(mgr ctrl.Manager, owner client.Object, gvk schema.GroupVersionKind) (handler.EventHandler, error) {
	ownerKind, err := apiutil.GVKForObject(owner, mgr.GetScheme())
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", owner, err)
	}
	if !slices.ContainsFunc(s.children, func(c *child) bool {
		kind, err := apiutil.GVKForObject(c.sample, mgr.GetScheme())
		return err == nil && kind == gvk && (c.options.anywhere || c.options.retain != nil)
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
