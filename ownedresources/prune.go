package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// desiredNames are the objects that are desired in one reconcile. Not all desired objects of the kinds in unbuilt are
// known: a child of such a kind was not built.
type desiredNames struct {
	objects []declared
	unbuilt []*kind
	retains []byte // see reconciliation.retains
}

// without returns the objects that are certainly not desired.
func (d desiredNames) without(found []written) (undesired []written) {
	if len(found) == 0 {
		return nil
	}
	names := make(map[record.Name]bool, len(d.objects))
	for i := range d.objects {
		names[d.objects[i].objectName()] = true
	}
	kinds := map[schema.GroupKind]bool{}
	for _, k := range d.unbuilt {
		kinds[k.gvk.GroupKind()] = true
	}
	for _, w := range found {
		kind := w.kind.gvk.GroupKind()
		if !kinds[kind] && !names[record.NameOf(kind, w.object)] {
			undesired = append(undesired, w)
		}
	}
	return undesired
}

// prune deletes the children that the set wrote for the owner and that are not desired any more. In a pass of package
// reconcile it does so after all steps, if each of them succeeded or waits. It reports whether nothing was left to do.
//
// It lists the children in the cache only if one of these holds:
//
//   - The desired names have changed, or what the functions of [Child.Retain] return.
//   - A child has appeared.
//   - A child was deleted.
//   - The process is new.
//   - The cache did not show a write of ours yet when they were last listed.
//   - The owner has the record of a Job that is not desired any more.
func (s *set) prune(ctx context.Context, o *owner, desired desiredNames) (done bool, err error) {
	digest := s.applier.owners.digest(desired)
	if s.applier.owners.isPruned(o.reference.UID, digest) && len(undesiredRuns(o, desired)) == 0 {
		return true, nil
	}
	now := func(ctx context.Context) error { return s.pruneNow(ctx, o, desired, digest) }
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.AfterSteps(now)
		return false, nil
	}
	return false, now(ctx)
}

func (s *set) pruneNow(ctx context.Context, o *owner, desired desiredNames, digest uint64) error {
	// Pending is read before listing. A list lacks what we wrote and the cache does not show yet. Then the children
	// have to be listed again.
	complete := !s.applier.writes.Pending()
	uid, pruned := o.reference.UID, uint64(0)
	s.applier.owners.beginList(uid)
	defer func() { s.applier.owners.endList(uid, pruned) }()
	found, unserved, err := s.listWritten(ctx, o)
	if err != nil {
		return err
	}
	undesired, err := s.withoutRetained(ctx, o, desired.without(found))
	if err != nil {
		return err
	}
	if _, err := s.deleteInOrder(ctx, o, undesired, "no longer desired"); err != nil {
		return err
	}
	if err := s.forgetRuns(ctx, o, desired, found); err != nil {
		return err
	}
	left, err := s.listFormer(ctx, o)
	if err != nil {
		return err
	}
	if _, err := s.deleteInOrder(ctx, o, desired.without(left), "left by a former "+o.String()); err != nil {
		return err
	}
	complete = complete && !slices.ContainsFunc(unserved, desired.knows) // they were served when the children were built
	if complete {
		pruned = digest
		if len(o.finalizers) > 0 {
			s.applier.owners.setMarked(o)
		}
	}
	return nil
}

// written is a live object that a set wrote for an owner.
type written struct {
	kind   *kind
	object client.Object
	order  int // see opblocks.dev/order
}

// listWritten returns the objects that this set wrote for the owner, also objects that are being deleted. unserved are
// the kinds that are not served ([IfServed]), which have no objects.
func (s *set) listWritten(ctx context.Context, o *owner) (found []written, unserved []*kind, err error) {
	return s.listIndexed(ctx, o, controllerBucket(o.reference.UID), func(k *kind, obj client.Object) bool { return s.isWritten(o, k, obj) })
}

// listFormer returns the objects that this set wrote anywhere for a former owner, and that are not retained. The
// garbage collector does not delete them. Without a manager, no event of theirs triggers a reconcile either.
func (s *set) listFormer(ctx context.Context, o *owner) ([]written, error) {
	name := o.objectName()
	found, _, err := s.listIndexed(ctx, o, nameBucket(name), func(k *kind, obj client.Object) bool {
		m, marked := record.MarkOf(obj, k.gvk.GroupKind())
		return marked && m.Owner == name && m.UID != o.reference.UID && !m.Retained && s.isAnywhere(k.gvk) && s.carriesMarks(obj)
	})
	return found, err
}

// listIndexed returns the objects of the set's kinds that are in a bucket of the index and satisfy a function.
func (s *set) listIndexed(ctx context.Context, o *owner, bucket string, is func(*kind, client.Object) bool) (found []written, unserved []*kind, err error) {
	kinds, err := s.kindsIn(o.client.Scheme())
	if err != nil {
		return nil, nil, err
	}
	for i, k := range kinds {
		if s.firstOfKind(kinds, i) != i || bucket != controllerBucket(o.reference.UID) && !s.isAnywhere(k.gvk) {
			continue
		}
		list, served, err := s.listIfServed(ctx, o, s.children[i], k.gvk, bucket)
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
func (s *set) firstOfKind(kinds []*kind, i int) int {
	return slices.IndexFunc(kinds, func(k *kind) bool { return k.gvk == kinds[i].gvk })
}

// isWritten reports whether a live object was written by this set for this owner. Most objects of a bucket of the index belong to
// other owners, so the owner is compared first.
func (s *set) isWritten(o *owner, k *kind, live client.Object) bool {
	if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
		return controller.UID == o.reference.UID && s.carriesMarks(live)
	}
	return s.carriesMarks(live) && o.isMarkedBy(live, k.gvk.GroupKind())
}

// carriesMarks reports whether a live object was written by this set, under its present name or an earlier one.
func (s *set) carriesMarks(live client.Object) bool {
	return isWrittenBy(live, s.name, s.formerNames)
}

// isWrittenBy reports whether a live object was written by a set of this name, or of one of its earlier names.
func isWrittenBy(live client.Object, set string, former []string) bool {
	name := live.GetAnnotations()[record.Set]
	return (name == set || slices.Contains(former, name)) && record.LastAppliedOf(live).Method != record.ByOthers
}

// deleteInOrder deletes the objects with the highest order. Objects with a lower order wait until these are gone: then
// the error is a [*WaitingError]. It returns the objects that are not gone yet. Objects that turn out not to be ours
// are left alone, and are not waited for. why is for the errors.
func (s *set) deleteInOrder(ctx context.Context, o *owner, found []written, why string) (remaining []written, err error) {
	defer s.applier.emitEvents(o)
	for len(found) > 0 {
		highest := 0
		for _, w := range found {
			highest = max(highest, w.order)
		}
		var deleting []string
		var later, ours []written
		var waits []*WaitingError
		for _, w := range found {
			if w.order < highest {
				later = append(later, w)
				continue
			}
			isOurs, err := s.delete(ctx, o, w)
			if wait, ok := errors.AsType[*WaitingError](err); ok {
				waits = append(waits, wait)
				continue
			}
			if err != nil {
				return found, fmt.Errorf("%s, %s: %w", w.kind.describe(w.object), why, err)
			}
			if isOurs {
				ours, deleting = append(ours, w), append(deleting, w.kind.describe(w.object))
			}
		}
		if len(waits) > 0 {
			return found, joinWaits(waits)
		}
		if len(deleting) > 0 && len(later) > 0 {
			return found, &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
				"%s: %s; waits for the deletion of %s, which came after", why, enumerate(describeAll(later)), enumerate(deleting))}
		}
		if found = later; len(deleting) > 0 {
			return ours, nil
		}
	}
	return nil, nil
}

func describeAll(all []written) []string {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = w.kind.describe(w.object)
	}
	return names
}

// enumerate lists the first three names, and the number of the others.
func enumerate(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// delete deletes an object that the set wrote. It returns false if it turns out not to be ours.
func (s *set) delete(ctx context.Context, o *owner, w written) (ours bool, err error) {
	runs := slices.Contains(w.object.GetFinalizers(), record.RunOnce)
	if w.object.GetDeletionTimestamp() != nil && !runs {
		return true, nil
	}
	a := s.applier
	if o.object.GetDeletionTimestamp() == nil {
		if err := a.slowDownByName(o, w.kind, w.object, deletion, sum{}); err != nil {
			return true, err
		}
	}
	m, marked := record.MarkOf(w.object, w.kind.gvk.GroupKind())
	switch marked = marked && metav1.GetControllerOfNoCopy(w.object) == nil; {
	case marked && m.UID != o.reference.UID:
		if gone, err := a.isGone(ctx, o, m); err != nil || !gone {
			return false, err
		}
	case marked && o.object.GetDeletionTimestamp() != nil:
		if err := a.confirmDeleted(ctx, o); err != nil {
			return true, err
		}
	default:
		if err := a.confirm(ctx, o); err != nil {
			return true, err
		}
	}
	if marked {
		return a.removeMarked(ctx, o, w.kind, w.object)
	}
	if runs {
		released, err := a.removeRunFinalizer(ctx, o, w.kind, w.object)
		if err != nil || released == nil || released.GetDeletionTimestamp() != nil {
			return true, err
		}
		w.object = released
	}
	err = deleteExactly(ctx, o.client, w.object, metav1.DeletePropagationBackground)
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete: %w", err)
	}
	if err == nil {
		a.countByName(o, w.kind, w.object, deletion, sum{})
		a.report(ctx, o, w.kind, w.object, outcomeDeleted, "")
	}
	return true, nil
}

// list returns objects of a kind, among them all objects in a bucket of the index. They may be the cache's own.
func (s *set) list(ctx context.Context, o *owner, sample client.Object, gvk schema.GroupVersionKind, bucket string) ([]client.Object, error) {
	list := newList(sample, gvk, o.client.Scheme())
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if !s.isAnywhere(gvk) {
		options = append(options, client.InNamespace(o.namespace))
	}
	reader := client.Reader(o.client)
	if s.cache != nil { // it has the index, also for unstructured objects
		reader = s.cache
		options = append(options, client.MatchingFields{controllerIndex: bucket})
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
