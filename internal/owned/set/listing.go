package set

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/record"
)

// listWritten returns the objects that this set wrote for the owner, including objects that are being deleted. If the API server does not
// serve a kind ([ownedresources.Child.IfServed]), the kind has no objects, and unserved is true.
func (s *Set) listWritten(ctx context.Context, o *owned.Owner) (found []written, unserved bool, err error) {
	is := func(k *owned.Kind, obj client.Object) bool { return s.isWritten(o, k, obj) }
	err = s.eachKind(o, func(place int, k *owned.Kind) error {
		all, served, err := s.list(ctx, o, place, k, []types.UID{o.Reference.UID}, is)
		found, unserved = append(found, all...), unserved || !served
		return err
	})
	return found, unserved, err
}

// listFormer returns the objects that this set wrote for a former owner (a deleted owner of the same name) without an owner reference, and
// that are not retained. The garbage collector does not delete them. Without a manager, their events do not trigger a reconcile either.
func (s *Set) listFormer(ctx context.Context, o *owned.Owner) (found []written, err error) {
	name := o.ObjectName()
	is := func(k *owned.Kind, obj client.Object) bool {
		m, marked := record.MarkOf(obj, k.GVK.GroupKind())
		return marked && m.Owner == name && m.UID != o.Reference.UID && !m.Retained && s.carriesRecords(obj)
	}
	err = s.eachKind(o, func(place int, k *owned.Kind) error {
		if !s.Known().isAnywhere(k.GVK) {
			return nil
		}
		all, _, err := s.list(ctx, o, place, k, s.childIndex.FormerOwners(name, o.Reference.UID), is)
		found = append(found, all...)
		return err
	})
	return found, err
}

// eachKind calls a function once for each kind of the set's children. place is the index of the first child of the kind.
func (s *Set) eachKind(o *owned.Owner, do func(place int, k *owned.Kind) error) error {
	kinds, err := s.KindsIn(o.Client.Scheme())
	if err != nil {
		return err
	}
	for i, k := range kinds {
		if firstOfKind(kinds, i) != i {
			continue
		}
		if err := do(i, k); err != nil {
			return fmt.Errorf("list the children of %s: %w", o, err)
		}
	}
	return nil
}

// list returns the objects of a kind for which the function returns true. With a manager it reads the objects whose names the index has for
// these owners. Without a manager it lists all objects of the kind. The objects may be in the cache's memory: do not modify them. If the
// kind is left out because it is not served, served is false.
func (s *Set) list(ctx context.Context, o *owned.Owner, place int, k *owned.Kind, owners []types.UID, is func(*owned.Kind, client.Object) bool) (found []written, served bool, err error) {
	state, err := s.Served.acquire(s.Children[place], k.GVK, o.Client)
	if err != nil || state.leavesOut() {
		return nil, false, err
	}
	defer s.Served.release(state, k.GVK)
	var all []client.Object
	switch s.Cache {
	case nil:
		all, err = s.listByClient(ctx, o, place, k)
	default:
		all, err = s.listIndexed(ctx, place, k, owners)
	}
	for _, obj := range all {
		if is(k, obj) {
			found = append(found, written{k, obj, record.OrderOf(obj)})
		}
	}
	return found, true, err
}

func (s *Set) listByClient(ctx context.Context, o *owned.Owner, place int, k *owned.Kind) ([]client.Object, error) {
	list := NewList(s.Children[place].Sample, k.GVK, o.Client.Scheme())
	options := []client.ListOption{client.UnsafeDisableDeepCopy, hashedvalues.AsHashed}
	if !s.Known().isAnywhere(k.GVK) {
		options = append(options, client.InNamespace(o.Namespace))
	}
	err := o.Client.List(ctx, list, options...)
	return ItemsOf(list), err
}

func (s *Set) listIndexed(ctx context.Context, place int, k *owned.Kind, owners []types.UID) (all []client.Object, err error) {
	watched := s.Children[watchedPlace(s.Children, s.Known().kinds, place)]
	for _, owner := range owners {
		for _, name := range s.childIndex.ChildrenOf(owner) {
			if int(name.Kind) != place {
				continue
			}
			obj := watched.empty()
			if found, _, err := s.readIndexed(ctx, k.GVK.GroupKind(), owner, name, nil, obj); err != nil {
				return nil, err
			} else if found {
				all = append(all, obj)
			}
		}
	}
	return all, nil
}

// readIndexed reads into live an object whose name is in the index, among the children of the owner. If the cache does not show the object
// as a child of the owner any more, readIndexed removes the name from the index. If another child of the owner has just appeared, the name
// cannot be removed, and gone is false.
//
// live must be typed or unstructured like the objects of the watch that fills the index. The cache may have one informer for typed and one
// for unstructured objects, and the other informer may be behind.
func (s *Set) readIndexed(ctx context.Context, kind schema.GroupKind, owner types.UID, name childindex.Name, mark *record.Mark, live client.Object) (found, gone bool, err error) {
	before := s.childIndex.State(owner)
	err = s.Cache.Get(ctx, name.NamespacedName, live, apply.AsCached...)
	if client.IgnoreNotFound(err) != nil {
		return false, false, err
	}
	if is, _, ok := s.writtenFor(kind, live); err != nil || !ok || is != owner {
		return false, s.childIndex.RemoveAbsent(owner, name, mark, before), nil
	}
	return true, false, nil
}

// writtenFor returns the UID of the owner for which the set has written an object. mark has the annotations of the object that name this
// owner. If the object has a controller, mark is nil. If the set has not written the object, ok is false.
func (s *Set) writtenFor(kind schema.GroupKind, obj client.Object) (owner types.UID, mark *record.Mark, ok bool) {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return ref.UID, nil, s.carriesRecords(obj)
	}
	if m, marked := record.MarkOf(obj, kind); marked {
		return m.UID, &m, s.carriesRecords(obj)
	}
	return "", nil, false
}

// isWritten reports whether a live object was written by this set for this owner.
func (s *Set) isWritten(o *owned.Owner, k *owned.Kind, live client.Object) bool {
	if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
		return controller.UID == o.Reference.UID && s.carriesRecords(live)
	}
	return s.carriesRecords(live) && o.IsMarkedBy(live, k.GVK.GroupKind())
}

// carriesRecords reports whether the annotations of a live object say that this set wrote it, under its present name or a former one.
func (s *Set) carriesRecords(live client.Object) bool {
	return owned.IsWrittenBy(live, s.Name, s.FormerNames)
}

// NewList returns an empty list of objects of a kind. Its items are typed or unstructured like sample.
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

// ItemsOf returns the objects of a list. It does not copy them.
func ItemsOf(list client.ObjectList) (objs []client.Object) {
	_ = meta.EachListItem(list, func(item runtime.Object) error { // a list has items, and the function returns nil, so there is never an error
		if obj, ok := item.(client.Object); ok {
			objs = append(objs, obj)
		}
		return nil
	})
	return objs
}
