package set

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// written is a live object that a set wrote for an owner.
type written struct {
	kind   *owned.Kind
	object client.Object
	order  int // see opblocks.dev/order
}

// listWritten returns the objects that this set wrote for the owner, also objects that are being deleted. unserved are
// the kinds that are not served ([ownedresources.IfServed]), which have no objects.
func (s Pruner) listWritten(ctx context.Context, o *owned.Owner) (found []written, unserved []*owned.Kind, err error) {
	return s.listIndexed(ctx, o, controllerBucket(o.Reference.UID), func(k *owned.Kind, obj client.Object) bool { return s.isWritten(o, k, obj) })
}

// listFormer returns the objects that this set wrote anywhere for a former owner, and that are not retained. The
// garbage collector does not delete them. Without a manager, no event of theirs triggers a reconcile either.
func (s Pruner) listFormer(ctx context.Context, o *owned.Owner) ([]written, error) {
	name := o.ObjectName()
	found, _, err := s.listIndexed(ctx, o, nameBucket(name), func(k *owned.Kind, obj client.Object) bool {
		m, marked := record.MarkOf(obj, k.GVK.GroupKind())
		return marked && m.Owner == name && m.UID != o.Reference.UID && !m.Retained && s.Known().isAnywhere(k.GVK) && s.carriesRecords(obj)
	})
	return found, err
}

// listIndexed returns the objects of the set's kinds that are in a bucket of the index and satisfy a function.
func (s Pruner) listIndexed(ctx context.Context, o *owned.Owner, bucket string, is func(*owned.Kind, client.Object) bool) (found []written, unserved []*owned.Kind, err error) {
	kinds, err := s.KindsIn(o.Client.Scheme())
	if err != nil {
		return nil, nil, err
	}
	for i, k := range kinds {
		if firstOfKind(kinds, i) != i || bucket != controllerBucket(o.Reference.UID) && !s.Known().isAnywhere(k.GVK) {
			continue
		}
		list, served, err := s.listIfServed(ctx, o, s.Children[i], k.GVK, bucket)
		if err != nil {
			return nil, nil, err
		}
		if !served {
			unserved = append(unserved, k)
		}
		for _, obj := range list {
			if is(k, obj) {
				found = append(found, written{k, obj, record.OrderOf(obj)})
			}
		}
	}
	return found, unserved, nil
}

// firstOfKind returns the index of the first child that has the same kind as child i.
func firstOfKind(kinds []*owned.Kind, i int) int {
	return slices.IndexFunc(kinds, func(k *owned.Kind) bool { return k.GVK == kinds[i].GVK })
}

// isWritten reports whether a live object was written by this set for this owner. Most objects of a bucket of the index belong to
// other owners, so the owner is compared first.
func (s *Set) isWritten(o *owned.Owner, k *owned.Kind, live client.Object) bool {
	if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
		return controller.UID == o.Reference.UID && s.carriesRecords(live)
	}
	return s.carriesRecords(live) && o.IsMarkedBy(live, k.GVK.GroupKind())
}

// carriesRecords reports whether a live object was written by this set, under its present name or an earlier one.
func (s *Set) carriesRecords(live client.Object) bool {
	return owned.IsWrittenBy(live, s.Name, s.FormerNames)
}

// list returns objects of a kind, among them all objects in a bucket of the index. They may be the cache's own.
func (s Pruner) list(ctx context.Context, o *owned.Owner, sample client.Object, gvk schema.GroupVersionKind, bucket string) ([]client.Object, error) {
	list := NewList(sample, gvk, o.Client.Scheme())
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if !s.Known().isAnywhere(gvk) {
		options = append(options, client.InNamespace(o.Namespace))
	}
	reader := client.Reader(o.Client)
	if s.Cache != nil { // it has the index, also for unstructured objects
		reader = s.Cache
		options = append(options, client.MatchingFields{controllerIndex: bucket})
	}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list the children of %s: %w", o, err)
	}
	return ItemsOf(list), nil
}

// NewList returns an empty list of objects of a kind, in the type of sample.
func NewList(sample client.Object, gvk schema.GroupVersionKind, scheme *runtime.Scheme) client.ObjectList {
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if _, untyped := sample.(runtime.Unstructured); !untyped {
		if typed, err := scheme.New(listKind); err == nil {
			if list, ok := typed.(client.ObjectList); ok {
				return list
			}
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listKind)
	return list
}

// ItemsOf returns the objects of a list, without copies.
func ItemsOf(list client.ObjectList) (objs []client.Object) {
	_ = meta.EachListItem(list, func(item runtime.Object) error { // a list has items, and the function returns no error
		if obj, ok := item.(client.Object); ok {
			objs = append(objs, obj)
		}
		return nil
	})
	return objs
}
