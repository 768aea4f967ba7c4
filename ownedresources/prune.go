package ownedresources

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// desiredNames are the objects that are desired in one reconcile, and the kinds of which that is not known: a child of them
// could not be built.
type desiredNames struct {
	objects []declared
	unbuilt []*kind
}

// without returns the objects that are certainly not desired.
func (d desiredNames) without(found []written) (undesired []written) {
	names := make(map[objectName]bool, len(d.objects))
	for i := range d.objects {
		names[d.objects[i].objectName()] = true
	}
	kinds := map[schema.GroupKind]bool{}
	for _, k := range d.unbuilt {
		kinds[k.gvk.GroupKind()] = true
	}
	for _, w := range found {
		kind := w.kind.gvk.GroupKind()
		if !kinds[kind] && !names[objectName{kind, client.ObjectKeyFromObject(w.object)}] {
			undesired = append(undesired, w)
		}
	}
	return undesired
}

// prune deletes the children that the set wrote for the owner and that are not desired any more. In a pass of package
// reconcile it does so after all steps, if each of them succeeded or waits. It lists the children in the cache, and only if
// the desired names have changed, a child was deleted, the process is new, or the cache did not show a write of ours yet.
func (s *ChildSet[T]) prune(ctx context.Context, o *owner, desired desiredNames) error {
	digest := s.applier.owners.digest(desired)
	if s.applier.owners.isPruned(o.reference.UID, digest) {
		return nil
	}
	now := func(ctx context.Context) error { return s.pruneNow(ctx, o, desired, digest) }
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.AfterSteps(now)
		return nil
	}
	return now(ctx)
}

func (s *ChildSet[T]) pruneNow(ctx context.Context, o *owner, desired desiredNames, digest uint64) error {
	// Pending is read before listing: the list lacks what we wrote and the cache does not show yet, so it has to be repeated.
	complete := !s.applier.writes.Pending()
	found, unserved, err := s.listWritten(ctx, o)
	if err != nil {
		return err
	}
	if err := s.deleteInOrder(ctx, o, desired.without(found), "no longer desired"); err != nil {
		return err
	}
	complete = complete && !slices.ContainsFunc(unserved, desired.knows) // they were served when the children were built
	if complete {
		s.applier.owners.setPruned(o.reference.UID, digest)
	}
	return nil
}

// written is a live object that a set wrote for an owner.
type written struct {
	kind   *kind
	object client.Object
	order  int // see [AnnotationOrder]
}

// listWritten returns the objects that this set wrote for the owner, also those that are being deleted, and the kinds that
// are not served ([IfServed]), of which there are none.
func (s *ChildSet[T]) listWritten(ctx context.Context, o *owner) (found []written, unserved []*kind, err error) {
	kinds, err := s.kindsIn(o.client.Scheme())
	if err != nil {
		return nil, nil, err
	}
	for i, k := range kinds {
		if slices.Index(kinds, k) < i {
			continue
		}
		list, served, err := s.listIfServed(ctx, o, s.children[i], k.gvk)
		if err != nil {
			return nil, nil, err
		}
		if !served {
			unserved = append(unserved, k)
		}
		for _, obj := range list {
			if s.isWritten(o, obj) {
				order, _ := strconv.Atoi(obj.GetAnnotations()[AnnotationOrder]) // absent is 0
				found = append(found, written{k, obj, order})
			}
		}
	}
	return found, unserved, nil
}

// isWritten reports whether a live object was written by this set for this owner.
func (s *ChildSet[T]) isWritten(o *owner, live client.Object) bool {
	return metav1.IsControlledBy(live, &metav1.ObjectMeta{UID: o.reference.UID}) &&
		live.GetAnnotations()[AnnotationSet] == s.name &&
		lastAppliedOf(live).method != byOthers
}

// deleteInOrder deletes the objects with the highest order. If there are others too, they have to wait until these are gone:
// then the error is a [*WaitingError]. why is for the errors.
func (s *ChildSet[T]) deleteInOrder(ctx context.Context, o *owner, found []written, why string) error {
	defer s.applier.emitEvents(o)
	highest := 0
	for _, w := range found {
		highest = max(highest, w.order)
	}
	var deleting, waiting []string
	for _, w := range found {
		if w.order < highest {
			waiting = append(waiting, w.kind.describe(w.object))
			continue
		}
		deleting = append(deleting, w.kind.describe(w.object))
		runs := slices.Contains(w.object.GetFinalizers(), RunOnceFinalizer)
		if w.object.GetDeletionTimestamp() != nil && !runs {
			continue
		}
		if err := s.applier.confirm(ctx, o); err != nil {
			return err
		}
		if runs {
			released, err := s.applier.releaseRun(ctx, o, w.kind, w.object)
			if err != nil {
				return err
			}
			if released == nil || released.GetDeletionTimestamp() != nil {
				continue
			}
			w.object = released
		}
		err := deleteExactly(ctx, o.client, w.object)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s, %s: %w", w.kind.describe(w.object), why, err)
		}
		if err == nil {
			s.applier.record(o, w.kind, w.object, outcomeDeleted, "")
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
		"%s: %s; waits for the deletion of %s, which came after", why, enumerate(waiting), enumerate(deleting))}
}

// enumerate lists the first three names, and the number of the others.
func enumerate(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// list returns objects of a kind, the owner's children among them. They may be the cache's own.
func (s *ChildSet[T]) list(ctx context.Context, o *owner, sample client.Object, gvk schema.GroupVersionKind) ([]client.Object, error) {
	list := newList(sample, gvk, o.client.Scheme())
	options := []client.ListOption{client.InNamespace(o.namespace), client.UnsafeDisableDeepCopy}
	reader := client.Reader(o.client)
	if s.cache != nil { // it has the index, also for unstructured objects
		reader = s.cache
		options = append(options, client.MatchingFields{controllerIndex: controllerBucket(o.reference.UID)})
	}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list the children of %s: %w", o, err)
	}
	return itemsOf(list), nil
}

// newList returns an empty list of objects of a kind, in the type of sample.
func newList(sample client.Object, gvk schema.GroupVersionKind, scheme *runtime.Scheme) client.ObjectList {
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

// itemsOf returns the objects of a list, without copies.
func itemsOf(list client.ObjectList) (objs []client.Object) {
	_ = meta.EachListItem(list, func(item runtime.Object) error { // a list has items, and the function returns no error
		if obj, ok := item.(client.Object); ok {
			objs = append(objs, obj)
		}
		return nil
	})
	return objs
}
