package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// MapFunc returns the requests to enqueue for an event of obj. It may read other objects through r, which reads the same
// kinds as the client of a step and returns the same errors. It must change neither obj nor what it reads.
type MapFunc[O client.Object] func(ctx context.Context, r client.Reader, obj O) []ctrl.Request

// Watching declares that the step reads objects of a kind, and watches them: for each event the requests that mapTo returns
// are enqueued. For an update mapTo is called twice, with the old and with the new object, and all requests are enqueued.
//
// kind is an empty object, such as &corev1.Pod{}. Predicates limit the events: an event has to pass all of them. Package
// predicates has some. If mapTo needs the old object of an update, such as one that loses the label by which it was mapped,
// the predicates must pass that update.
func Watching[O client.Object](kind O, mapTo MapFunc[O], predicates ...predicate.Predicate) StepOption {
	return func(o *stepOptions) {
		o.watches = append(o.watches, watch{object: kind, predicates: predicates, mapTo: func(ctx context.Context, r client.Reader, obj client.Object) []ctrl.Request {
			typed, ok := obj.(O)
			if !ok {
				return nil
			}
			return mapTo(ctx, r, typed)
		}})
	}
}

// watch is a kind that a step watches.
type watch struct {
	object     client.Object
	mapTo      MapFunc[client.Object]
	predicates []predicate.Predicate
}

// handler returns the event handler, whose mapping function reads through r.
func (w *watch) handler(r client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		return w.mapTo(ctx, r, obj)
	})
}

func (w *watch) setup(b *ctrl.Builder, r client.Reader) {
	b.Watches(w.object, w.handler(r), builder.WithPredicates(w.predicates...))
}

// Referencing declares which objects of a kind, such as a Secret with a password, a T references without owning them. A
// change of such an object, its deletion and its re-creation trigger a reconcile of the T.
//
// kind is an empty object, such as &corev1.Secret{}. names returns the names of the objects that obj references; an empty
// namespace is that of obj. It must only read, and always return the same for the same obj.
//
// The cache holds only the metadata of these objects. The client of the step reads an object from the API server, with one
// request each. To save it, read its *metav1.PartialObjectMetadata, which comes from the cache, and compare the [VersionOf]
// that first. Lists of whole objects are refused.
//
// The operator needs the verbs get, list and watch on the kind. RBAC cannot tell a watch of metadata from a watch of whole
// objects: where that matters, limit the permission by namespace.
func Referencing[T client.Object](kind client.Object, names func(obj T) []types.NamespacedName) StepOption {
	return referencing(false, kind, names)
}

// ReferencingCached is [Referencing] for objects that the steps read in every pass and that contain no secrets, such as a
// Deployment whose status is observed. The cache holds the whole objects, and the client of the step reads and lists them
// there.
func ReferencingCached[T client.Object](kind client.Object, names func(obj T) []types.NamespacedName) StepOption {
	return referencing(true, kind, names)
}

// reference is a kind that a step references.
type reference struct {
	object client.Object
	cached bool         // as a whole, not only its metadata
	from   reflect.Type // of the argument of names
	names  func(obj client.Object) []types.NamespacedName
}

func referencing[T client.Object](cached bool, kind client.Object, names func(obj T) []types.NamespacedName) StepOption {
	return func(o *stepOptions) {
		o.references = append(o.references, reference{object: kind, cached: cached, from: reflect.TypeFor[T](), names: func(obj client.Object) []types.NamespacedName {
			typed, ok := obj.(T)
			if !ok {
				return nil
			}
			all := slices.Clone(names(typed)) // the slice may belong to the object in the cache
			for i := range all {
				if all[i].Namespace == "" {
					all[i].Namespace = obj.GetNamespace()
				}
			}
			return all
		}})
	}
}

// VersionOf returns a string that changes whenever the object is changed, or deleted and created again: its UID and its
// resource version.
func VersionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

// setupReferences adds one watch for each kind that the steps reference.
func (r *Reconciler[T]) setupReferences(mgr ctrl.Manager, b *ctrl.Builder) error {
	byKind := map[schema.GroupVersionKind][]reference{}
	var kinds []schema.GroupVersionKind
	for i := range r.steps {
		for _, ref := range r.steps[i].references {
			kind, err := apiutil.GVKForObject(ref.object, mgr.GetScheme())
			if err != nil {
				return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", ref.object, err)
			}
			if byKind[kind] == nil {
				kinds = append(kinds, kind)
			}
			byKind[kind] = append(byKind[kind], ref)
		}
	}
	for _, kind := range kinds {
		if err := r.setupReference(mgr, b, kind, byKind[kind]); err != nil {
			return fmt.Errorf("references of %s to %s: %w", r.kind.Kind, kind.Kind, err)
		}
	}
	return nil
}

// setupReference indexes the objects of the reconciler by what they reference of one kind, and watches that kind.
func (r *Reconciler[T]) setupReference(mgr ctrl.Manager, b *ctrl.Builder, kind schema.GroupVersionKind, references []reference) error {
	// The pointer is in the name because another reconciler of the same kind has an index of its own.
	index := fmt.Sprintf("opblocks.dev/%p-refers-to-%s", r, kind.GroupKind())
	err := mgr.GetFieldIndexer().IndexField(context.Background(), r.empty(), index, func(obj client.Object) []string {
		var keys []string
		for _, ref := range references {
			for _, name := range ref.names(obj) {
				keys = append(keys, name.String())
			}
		}
		return keys
	})
	if err != nil {
		return err
	}
	list, err := mgr.GetScheme().New(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	if err != nil {
		return err
	}
	referrers := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		found := list.DeepCopyObject().(client.ObjectList)
		key := client.ObjectKeyFromObject(obj).String()
		if err := mgr.GetClient().List(ctx, found, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Cannot list the objects that reference an object", "kind", kind.Kind, "object", key)
			return nil
		}
		var requests []ctrl.Request
		_ = meta.EachListItem(found, func(item runtime.Object) error { // the function returns no error
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(item.(client.Object))})
			return nil
		})
		return requests
	})
	if slices.ContainsFunc(references, func(ref reference) bool { return ref.cached }) {
		b.Watches(references[0].object, referrers)
		return nil
	}
	watched := &metav1.PartialObjectMetadata{}
	watched.SetGroupVersionKind(kind)
	b.WatchesMetadata(watched, referrers)
	return nil
}
