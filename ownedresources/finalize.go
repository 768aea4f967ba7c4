package ownedresources

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

	"github.com/opblocks/opblocks/internal/record"
)

// RemoveInOrder deletes the children in the reverse order of [Child.After] when the owner is deleted: a child is
// deleted when the children that came after it are gone. It returns the set. The owner gets a finalizer for it, see
// [ChildSet.FinalizerName].
//
// The garbage collector takes no notice of the order. So the order holds only if the owner is deleted with background
// propagation, which is the default of kubectl and of most clients: with foreground propagation the collector deletes
// all children at once. What a child owns itself, such as the pods of a Deployment, may outlive it for a moment.
func (s *ChildSet[T]) RemoveInOrder() *ChildSet[T] {
	s.removeInOrder = true
	return s
}

// FinalizerName returns the finalizer that the owner needs for [ChildSet.Finalize], or nothing if there is nothing to
// clean up. Only sets with [ChildSet.RemoveInOrder], [Anywhere], [Child.Retain], [RunOnce] or [ExpandVolumes] need one. The
// finalizer is "children.opblocks.dev/" and the name of the set, or "set" if it has none. Package reconcile adds and
// removes it. In a reconciler of your own, add it before the first Reconcile and remove it when Finalize has returned
// nil.
func (s *set) FinalizerName() string {
	marked := slices.ContainsFunc(s.children, func(c *child) bool {
		return c != nil && (c.options.anywhere || c.options.retain != nil)
	})
	if !s.removeInOrder && !marked && !s.holdsObjects() {
		return ""
	}
	return record.Finalizer(s.name)
}

// FormerFinalizerNames returns the finalizers that the set had under its earlier names ([ChildSet.SetFormerNames]).
// [ChildSet.Finalize] serves them too. Package reconcile replaces them by the present one. In a reconciler of your own,
// remove them when you add the present one (finalizers.Replace does both in one request), and after Finalize has
// returned nil.
func (s *set) FormerFinalizerNames() (names []string) {
	if s.FinalizerName() == "" {
		return nil
	}
	for _, name := range s.formerNames {
		names = append(names, record.Finalizer(name))
	}
	return names
}

// holdsObjects reports whether a child may hold something that the garbage collector does not let go: see [RunOnce] and
// [ExpandVolumes].
func (s *set) holdsObjects() bool {
	return slices.ContainsFunc(s.children, func(c *child) bool {
		return c != nil && (c.options.runOnce || c.options.expandVolumes) // nil is a mistake, which Reconcile returns
	})
}

// Finalize deletes the children of an owner that is being deleted, if nobody else deletes them: the children with the
// option [Anywhere], or with [ChildSet.RemoveInOrder] all children, in order. Children that [Child.Retain] keeps stay. Before
// that, Finalize removes the finalizers from the Jobs of [RunOnce], and deletes the pods that [ExpandVolumes] has
// orphaned. Until all of these are gone, the error is a [*WaitingError], and the event of a child's deletion triggers
// the next reconcile. Package reconcile calls it.
func (s *ChildSet[T]) Finalize(ctx context.Context, c client.Client, obj T) error {
	return s.finalizeOwner(ctx, c, obj)
}

func (s *set) finalizeOwner(ctx context.Context, c client.Client, obj client.Object) error {
	if err := s.err(); err != nil {
		return err
	}
	o, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	o.set, o.formerSets, o.finalizers = s.name, s.formerNames, s.finalizerNames()
	defer s.applier.emitEvents(&o)
	if err := errors.Join(s.removeRunFinalizers(ctx, &o), s.abandonExpansions(ctx, &o, nil)); err != nil {
		return err
	}
	kinds, err := s.kindsIn(c.Scheme())
	if err != nil {
		return err
	}
	r := &reconciliation{set: s, ctx: ctx, client: c, owner: &o, object: s.withoutRecords(obj), kinds: kinds, states: make([]childState, len(s.children))}
	found, _, err := s.listWritten(ctx, &o)
	if err != nil {
		return err
	}
	known := s.retentionOf(r)
	found, stay, err := s.retainAtDeletion(r, known, found)
	if err != nil {
		return err
	}
	if s.isOrphaning(&o) {
		released, err := s.unmarkAll(r, known, found)
		if err == nil {
			s.reportRetained(ctx, &o, append(stay, released...))
		}
		return err
	}
	switch remaining, err := s.finalize(r, known, found); {
	case err != nil:
		return err
	case len(remaining) > 0:
		return &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
			"removed with %s: %s; waits for their deletion", &o, enumerate(describeAll(remaining)))}
	}
	s.reportRetained(ctx, &o, stay)
	return nil
}

// finalize deletes what the garbage collector does not delete, and returns the objects that still exist.
func (s *set) finalize(r *reconciliation, known *retention, found []written) (remaining []written, err error) {
	ctx, o := r.ctx, r.owner
	if !s.removeInOrder {
		found = slices.DeleteFunc(found, func(w written) bool { return !o.isMarkedBy(w.object, w.kind.gvk.GroupKind()) })
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
	// The cache may not show yet what was created right before, perhaps by the process before this one.
	unseen, err := s.listMarkedLive(r, known)
	if err != nil || len(unseen) == 0 {
		return nil, err
	}
	remaining, err = s.deleteInOrder(ctx, o, unseen, "removed with "+o.String())
	if err == nil && len(remaining) > 0 {
		err = &WaitingError{reason: reasonTerminating, after: unseenDelay, message: fmt.Sprintf(
			"removed with %s: %s, which the cache does not show yet; waits for their deletion", o, enumerate(describeAll(remaining)))}
	}
	return remaining, err
}

// unseenDelay is the delay before Finalize checks again whether an object that the cache does not show is gone.
const unseenDelay = 2 * time.Second

// listMarkedLive returns the objects without an owner reference that this set wrote for the owner, read past the cache.
// Objects that stay are left out.
func (s *set) listMarkedLive(r *reconciliation, known *retention) (found []written, err error) {
	for i, k := range r.kinds {
		if s.firstOfKind(r.kinds, i) != i || !s.isMarked(k.gvk) {
			continue
		}
		items, err := s.listLabelled(r, k)
		if err != nil {
			return nil, err
		}
		for j := range items {
			w := written{kind: k, object: &items[j], order: record.OrderOf(&items[j])}
			if !r.owner.isMarkedBy(w.object, k.gvk.GroupKind()) || !s.isWritten(r.owner, k, w.object) || s.stays(known, r.owner, w) {
				continue
			}
			if !s.covers(r.ctx, s.children[i].sample, k.gvk, client.ObjectKeyFromObject(w.object)) {
				return nil, fmt.Errorf("%s belongs to %s, which is being deleted, and is in a namespace that the operator's cache does not cover any more: "+
					"delete it, or add the namespace to Cache.DefaultNamespaces of the manager's options", k.describe(w.object), r.owner)
			}
			found = append(found, w)
		}
	}
	return found, nil
}

// listLabelled lists the metadata of the objects of a kind that have the owner's label, past the cache. If the operator's
// role does not allow to list a kind in all namespaces, it lists the namespaces of the desired objects.
func (s *set) listLabelled(r *reconciliation, k *kind) ([]metav1.PartialObjectMetadata, error) {
	list := func(namespace string) ([]metav1.PartialObjectMetadata, error) {
		objs := &metav1.PartialObjectMetadataList{}
		objs.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		err := s.applier.liveReader(r.owner).List(r.ctx, objs, client.InNamespace(namespace), client.MatchingLabels{record.OwnerUID: string(r.owner.reference.UID)})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil // the kind is not served any more, so there are none
		}
		if err != nil {
			return nil, fmt.Errorf("list the children of %s: %w", r.owner, err)
		}
		return objs.Items, nil
	}
	if !s.isAnywhere(k.gvk) {
		return list(r.owner.namespace)
	}
	all, err := list("")
	if !apierrors.IsForbidden(err) {
		return all, err
	}
	namespaces := map[string]bool{}
	for i, child := range s.children {
		if !r.states[i].built && child.liveInput() == nil {
			r.build(i) // what cannot be built here was not created by the last reconcile either
		}
	}
	for j := range r.objects {
		if d := &r.objects[j]; d.err == nil && d.kind.gvk.GroupKind() == k.gvk.GroupKind() && d.object.GetNamespace() != "" {
			namespaces[d.object.GetNamespace()] = true
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

// observeOrphaning notes which owners are deleted with orphan propagation. The API server shows that by a finalizer,
// which the garbage collector removes after some milliseconds. The cache calls the functions of its indexes for each
// version of an object, and before any event handler. An event handler might be called only after the pass that needs to
// know.
func (s *set) observeOrphaning(mgr ctrl.Manager, owner client.Object) error {
	if !slices.ContainsFunc(s.children, func(c *child) bool { return c.options.anywhere }) {
		return nil
	}
	// The pointer is in the name because another set of the same kind has an index of its own.
	index := fmt.Sprintf("opblocks.dev/%p-orphaning", s)
	return mgr.GetFieldIndexer().IndexField(context.Background(), owner, index, func(obj client.Object) []string {
		s.applier.owners.ownerSeen(obj)
		return nil
	})
}

// isOrphaning reports whether the owner is deleted with orphan propagation.
func (s *set) isOrphaning(o *owner) bool {
	return slices.Contains(o.object.GetFinalizers(), metav1.FinalizerOrphanDependents) || s.applier.owners.isOrphaning(o.reference.UID)
}

// unmarkAll takes the marks off the objects that the set wrote anywhere, which then belong to nobody. The garbage
// collector does the same with the owner references of the other objects.
func (s *set) unmarkAll(r *reconciliation, known *retention, found []written) (released []written, err error) {
	unseen, err := s.listMarkedLive(r, known)
	if err != nil {
		return nil, err
	}
	for _, w := range unseen {
		if !containsName(found, record.NameOf(w.kind.gvk.GroupKind(), w.object)) {
			found = append(found, w)
		}
	}
	for _, w := range found {
		if !r.owner.isMarkedBy(w.object, w.kind.gvk.GroupKind()) || w.object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := s.applier.unmark(r.ctx, r.owner, w); err != nil {
			return nil, err
		}
		released = append(released, w)
	}
	return released, nil
}
