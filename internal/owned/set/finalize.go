package set

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/record"
)

// FinalizerName returns the finalizer that owners need, or "" if they need none: see [ownedresources.ChildSet.FinalizerName].
func (s *Set) FinalizerName() string {
	marked := slices.ContainsFunc(s.Children, func(c *Child) bool {
		return c != nil && (c.Options.Anywhere || c.Options.Retain != nil)
	})
	if !s.RemoveInOrder && !marked && !s.holdsObjects() {
		return ""
	}
	return record.Finalizer(s.Name)
}

// FormerFinalizerNames returns the finalizers of the set's former names: see [ownedresources.ChildSet.FormerFinalizerNames].
func (s *Set) FormerFinalizerNames() (names []string) {
	if s.FinalizerName() == "" {
		return nil
	}
	for _, name := range s.FormerNames {
		names = append(names, record.Finalizer(name))
	}
	return names
}

// holdsObjects reports whether the set may leave objects behind that the garbage collector does not delete: Jobs with a finalizer
// ([ownedresources.Child.RunOnce]), or pods without a controller ([ownedresources.Child.ExpandVolumes]).
func (s *Set) holdsObjects() bool {
	return slices.ContainsFunc(s.Children, func(c *Child) bool {
		return c != nil && (c.Options.RunOnce || c.Options.ExpandVolumes) // a nil child is a mistake, which Reconcile returns
	})
}

// FinalizeOwner deletes the objects that the garbage collector does not delete: see [ownedresources.ChildSet.Finalize].
func (s *Set) FinalizeOwner(ctx context.Context, c client.Client, obj client.Object) error {
	r, err := newReconciliation(ctx, s, c, obj, toClean)
	if err != nil {
		return err
	}
	o := r.owner
	defer s.Applier.EmitEvents(o)
	if err := errors.Join(s.removeRunFinalizers(ctx, o), s.abandonExpansions(ctx, o, nil)); err != nil {
		return err
	}
	found, _, err := s.listWritten(ctx, o)
	if err != nil {
		return err
	}
	known := s.retentionOf(r)
	found, stay, err := s.retainAtDeletion(r, known, found)
	if err != nil {
		return err
	}
	if s.isOrphaning(o) {
		released, err := s.unmarkAll(r, known, found)
		if err == nil {
			s.reportRetained(ctx, o, append(stay, released...))
		}
		return err
	}
	switch remaining, err := s.finalize(r, known, found); {
	case err != nil:
		return err
	case len(remaining) > 0:
		return owned.NewWaiting(owned.ReasonTerminating, 0, fmt.Sprintf(
			"removed with %s: %s; waits for their deletion", o, enumerate(describeAll(remaining))))
	}
	s.reportRetained(ctx, o, stay)
	return nil
}

// finalize deletes the objects that the garbage collector does not delete, and returns the objects that still exist.
func (s *Set) finalize(r *Reconciliation, known *retention, found []written) (remaining []written, err error) {
	ctx, o := r.ctx, r.owner
	if !s.RemoveInOrder {
		found = slices.DeleteFunc(found, func(w written) bool { return !o.IsMarkedBy(w.object, w.kind.GVK.GroupKind()) })
	}
	remaining, err = s.deleteInOrder(ctx, o, found, "removed with "+o.String())
	if err != nil || len(remaining) > 0 {
		return remaining, err
	}
	left, err := s.listFormer(ctx, o)
	if err != nil {
		return nil, err
	}
	remaining, err = s.deleteInOrder(ctx, o, left, "left by a former "+o.String())
	if err != nil || len(remaining) > 0 {
		return remaining, err
	}
	// The cache may not show an object that was created just before, perhaps by an earlier process.
	unseen, err := s.listMarkedLive(r, known)
	if err != nil || len(unseen) == 0 {
		return nil, err
	}
	remaining, err = s.deleteInOrder(ctx, o, unseen, "removed with "+o.String())
	if err == nil && len(remaining) > 0 {
		err = owned.NewWaiting(owned.ReasonTerminating, UnseenDelay, fmt.Sprintf(
			"removed with %s: %s, which the cache does not show yet; waits for their deletion", o, enumerate(describeAll(remaining))))
	}
	return remaining, err
}

// UnseenDelay is the delay before Finalize checks again whether objects that the cache does not show are gone.
const UnseenDelay = 2 * time.Second

// listMarkedLive reads from the API server the objects that this set wrote for the owner without an owner reference. It leaves out the
// objects that stay when the owner is deleted.
func (s *Set) listMarkedLive(r *Reconciliation, known *retention) (found []written, err error) {
	for i, k := range r.Kinds {
		if firstOfKind(r.Kinds, i) != i || !s.Known().isMarked(k.GVK) {
			continue
		}
		items, err := s.listLabelled(r, k)
		if err != nil {
			return nil, err
		}
		for j := range items {
			w := written{kind: k, object: &items[j], order: record.OrderOf(&items[j])}
			if !r.owner.IsMarkedBy(w.object, k.GVK.GroupKind()) || !s.isWritten(r.owner, k, w.object) || s.stays(known, r.owner, w) {
				continue
			}
			if !s.covers(r.ctx, s.Children[i].Sample, k.GVK, client.ObjectKeyFromObject(w.object)) {
				return nil, fmt.Errorf("%s belongs to %s, which is being deleted, and is in a namespace that the operator's cache does not cover any more: "+
					"delete it, or add the namespace to Cache.DefaultNamespaces of the manager's options", k.Describe(w.object), r.owner)
			}
			found = append(found, w)
		}
	}
	return found, nil
}

// listLabelled lists from the API server the metadata of the objects of a kind that have the label with the owner's UID. If the operator's
// role does not allow listing the kind in all namespaces, listLabelled lists only the namespaces of the desired objects.
func (s *Set) listLabelled(r *Reconciliation, k *owned.Kind) ([]metav1.PartialObjectMetadata, error) {
	list := func(namespace string) ([]metav1.PartialObjectMetadata, error) {
		objs := &metav1.PartialObjectMetadataList{}
		objs.SetGroupVersionKind(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
		err := r.owner.LiveReader().List(r.ctx, objs, client.InNamespace(namespace), client.MatchingLabels{record.OwnerUID: string(r.owner.Reference.UID)})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil // a kind that is not served any more has no objects
		}
		if err != nil {
			return nil, fmt.Errorf("list the children of %s: %w", r.owner, err)
		}
		return objs.Items, nil
	}
	if !s.Known().isAnywhere(k.GVK) {
		return list(r.owner.Namespace)
	}
	all, err := list("")
	if !apierrors.IsForbidden(err) {
		return all, err
	}
	namespaces := map[string]bool{}
	for i, child := range s.Children {
		if !r.States[i].built && child.liveInput() == nil {
			r.build(i) // if the child cannot be built here, the last reconcile has not created its objects either
		}
	}
	for j := range r.objects {
		if d := &r.objects[j]; d.Err == nil && d.Kind.GVK.GroupKind() == k.GVK.GroupKind() && d.Object.GetNamespace() != "" {
			namespaces[d.Object.GetNamespace()] = true
		}
	}
	if len(namespaces) == 0 {
		return nil, err
	}
	for namespace := range namespaces {
		items, err := list(namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// observeOrphaning records which owners are deleted with orphan propagation. During such a deletion the owner has a finalizer, which the
// garbage collector removes after some milliseconds. The cache calls index functions for each version of an object, before any event
// handler. An event handler might be called too late, after the reconcile that needs to know.
func (s *Set) observeOrphaning(mgr ctrl.Manager, owner client.Object) error {
	if !slices.ContainsFunc(s.Children, func(c *Child) bool { return c.Options.Anywhere }) {
		return nil
	}
	// The index name contains the pointer, because another set for the same kind of owner needs its own index.
	index := fmt.Sprintf("opblocks.dev/%p-orphaning", s)
	return mgr.GetFieldIndexer().IndexField(context.Background(), owner, index, func(obj client.Object) []string {
		s.Owners.ownerSeen(obj)
		return nil
	})
}

// isOrphaning reports whether the owner is deleted with orphan propagation, so that its children have to stay.
func (s *Set) isOrphaning(o *owned.Owner) bool {
	return slices.Contains(o.Object.GetFinalizers(), metav1.FinalizerOrphanDependents) || s.Owners.isOrphaning(o.Reference.UID)
}

// unmarkAll is called if the owner is deleted with orphan propagation. From the objects that the set wrote for the owner without an owner
// reference, it removes the annotations that name the owner. These objects then belong to nobody. The garbage collector does the same with
// the owner references of the other objects.
func (s *Set) unmarkAll(r *Reconciliation, known *retention, found []written) (released []written, err error) {
	unseen, err := s.listMarkedLive(r, known)
	if err != nil {
		return nil, err
	}
	for _, w := range unseen {
		if !containsName(found, record.NameOf(w.kind.GVK.GroupKind(), w.object)) {
			found = append(found, w)
		}
	}
	for _, w := range found {
		if !r.owner.IsMarkedBy(w.object, w.kind.GVK.GroupKind()) || w.object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := write.Unmark(r.ctx, r.owner, w.kind, w.object); err != nil {
			return nil, err
		}
		released = append(released, w)
	}
	return released, nil
}
