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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// reference is a kind of objects that T names.
type reference struct {
	object client.Object
	cached bool         // whole, and not its metadata alone
	from   reflect.Type // what names takes
	names  func(obj client.Object) []types.NamespacedName
}

// Referencing declares which objects of a kind (a Secret with a password, a ConfigMap) a T refers
// to without owning them. A change of one, its deletion and its re-creation bring the T's pass. An
// empty namespace is the T's own. The function must only read, and give the same for the same T.
//
// Of these objects the cache holds metadata only. The step's client reads them by name from the
// API server, with a request each: compare [VersionOf] of a *metav1.PartialObjectMetadata first, which
// comes from the cache. Lists of their contents are refused.
//
// The operator needs get, list and watch on the kind: RBAC cannot tell a watch of metadata from
// reading, so limit it by namespaces where that matters.
func Referencing[T client.Object](kind client.Object, names func(obj T) []types.NamespacedName) StepOption {
	return refer(false, kind, names)
}

// ReferencingCached is [Referencing] for objects that the steps read in every pass, and that hold no secret,
// such as a Deployment whose status is looked at: the cache has them whole, and the step's client
// reads and lists them there.
func ReferencingCached[T client.Object](kind client.Object, names func(obj T) []types.NamespacedName) StepOption {
	return refer(true, kind, names)
}

func refer[T client.Object](cached bool, kind client.Object, names func(obj T) []types.NamespacedName) StepOption {
	return func(o *stepOptions) {
		o.references = append(o.references, reference{object: kind, cached: cached, from: reflect.TypeFor[T](), names: func(obj client.Object) []types.NamespacedName {
			typed, ok := obj.(T)
			if !ok {
				return nil
			}
			all := slices.Clone(names(typed)) // it may be a part of what is in the cache
			for i := range all {
				if all[i].Namespace == "" {
					all[i].Namespace = obj.GetNamespace()
				}
			}
			return all
		}})
	}
}

// VersionOfOf tells the states of an object apart without its content: UID and resource version.
func VersionOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

// watchReferences indexes the objects of the reconciler's kind by what they refer to, and watches that.
func (r *Reconciler[T]) watchReferences(mgr ctrl.Manager, b *ctrl.Builder) error {
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
		if err := r.watchReferred(mgr, b, kind, byKind[kind]); err != nil {
			return fmt.Errorf("references of %s to %s: %w", r.kind.Kind, kind.Kind, err)
		}
	}
	return nil
}

func (r *Reconciler[T]) watchReferred(mgr ctrl.Manager, b *ctrl.Builder, kind schema.GroupVersionKind, references []reference) error {
	// Another reconciler of the same objects has an index of its own.
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
	referrers := func(ctx context.Context, obj client.Object) []ctrl.Request {
		found := list.DeepCopyObject().(client.ObjectList)
		key := client.ObjectKeyFromObject(obj).String()
		if err := mgr.GetClient().List(ctx, found, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Cannot find who refers to an object", "kind", kind.Kind, "object", key)
			return nil
		}
		var requests []ctrl.Request
		_ = meta.EachListItem(found, func(item runtime.Object) error { // the function gives no error
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(item.(client.Object))})
			return nil
		})
		return requests
	}
	if slices.ContainsFunc(references, func(ref reference) bool { return ref.cached }) {
		b.Watches(references[0].object, handler.EnqueueRequestsFromMapFunc(referrers))
		return nil
	}
	watched := &metav1.PartialObjectMetadata{}
	watched.SetGroupVersionKind(kind)
	b.WatchesMetadata(watched, handler.EnqueueRequestsFromMapFunc(referrers))
	return nil
}
