// Package references watches the objects that another object names. If such an object changes, the objects that name it are enqueued.
// Packages reconcile and ownedresources both use it.
package references

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/servedkinds"
	"github.com/opblocks/opblocks/internal/versions"
)

// Reference declares which objects of one kind another object names.
type Reference struct {
	// Object is an empty object of the kind.
	Object client.Object
	// Cached is true if the cache has to hold the whole objects, and not only their metadata.
	Cached bool
	// Names returns the names of the objects that an object names, each with its namespace.
	Names func(client.Object) []types.NamespacedName
}

// New returns the Reference for the objects that names returns. An empty namespace stands for the namespace of the T.
func New[T client.Object](cached bool, obj client.Object, names func(T) []types.NamespacedName) Reference {
	return Reference{Object: obj, Cached: cached, Names: func(referrer client.Object) []types.NamespacedName {
		typed, ok := referrer.(T)
		if !ok {
			return nil
		}
		all := slices.Clone(names(typed)) // a copy, because the slice may belong to an object in the cache
		for i := range all {
			if all[i].Namespace == "" {
				all[i].Namespace = referrer.GetNamespace()
			}
		}
		return all
	}}
}

// Watch adds one watch for each kind of object that the references name, in the form in which the kind is watched. from is an empty
// object of the type that names these objects. holder is a pointer that belongs only to the caller, so that the names of the indexes are
// unique. served has the watches of kinds that the API server may not serve: their events come from these watches.
func Watch(mgr ctrl.Manager, b *ctrl.Builder, from client.Object, holder any, references []Reference, forms *Forms, served map[schema.GroupVersionKind]*servedkinds.Watch) error {
	fromKind, err := apiutil.GVKForObject(from, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", from, err)
	}
	byKind := map[schema.GroupVersionKind][]Reference{}
	var kinds []schema.GroupVersionKind
	for _, ref := range references {
		kind, err := apiutil.GVKForObject(ref.Object, mgr.GetScheme())
		if err != nil {
			return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", ref.Object, err)
		}
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], ref)
	}
	for _, kind := range kinds {
		w := watch{mgr: mgr, from: from, fromKind: fromKind, kind: kind, references: byKind[kind], forms: forms, served: served[kind]}
		// The name contains the pointer, because another reconciler of the same kind needs its own index.
		if err := w.add(b, fmt.Sprintf("opblocks.dev/%p-refers-to-%s", holder, kind.GroupKind())); err != nil {
			return fmt.Errorf("references of %s to %s: %w", fromKind.Kind, kind.Kind, err)
		}
	}
	return nil
}

// watch is a watch of one kind of object that others name.
type watch struct {
	mgr            ctrl.Manager
	from           client.Object
	fromKind, kind schema.GroupVersionKind
	references     []Reference
	forms          *Forms
	served         *servedkinds.Watch // set only if the API server may not serve the kind
}

// add adds an index of the objects by the names that they name, and watches the named objects.
func (w *watch) add(b *ctrl.Builder, index string) error {
	err := w.mgr.GetFieldIndexer().IndexField(context.Background(), w.from, index, func(obj client.Object) []string {
		var keys []string
		for _, ref := range w.references {
			for _, name := range ref.Names(obj) {
				keys = append(keys, name.String())
			}
		}
		return keys
	})
	if err != nil {
		return err
	}
	list, err := w.mgr.GetScheme().New(w.fromKind.GroupVersion().WithKind(w.fromKind.Kind + "List"))
	if err != nil {
		return err
	}
	referrers := observing{&w.forms.Epoch, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []ctrl.Request {
		found := list.DeepCopyObject().(client.ObjectList)
		key := client.ObjectKeyFromObject(obj).String()
		if err := w.mgr.GetClient().List(ctx, found, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Cannot list the objects that reference an object", "kind", w.kind.Kind, "object", key)
			return nil
		}
		var requests []ctrl.Request
		_ = meta.EachListItem(found, func(item runtime.Object) error { // the function returns no error, so there is none
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(item.(client.Object))})
			return nil
		})
		return requests
	})}
	if w.served != nil {
		w.served.AddHandler(servedkinds.Handler{Handler: referrers})
		return nil
	}
	watched, err := w.forms.empty(w.kind)
	if err != nil {
		return err
	}
	b.Watches(watched, referrers)
	return nil
}

// observing is a handler that also passes the resource versions of updates to a versions.Epoch.
type observing struct {
	epoch *versions.Epoch
	handler.EventHandler
}

func (o observing) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	o.epoch.Observe(e.ObjectOld, e.ObjectNew)
	o.EventHandler.Update(ctx, e, q)
}
