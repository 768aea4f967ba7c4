package ownedresources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RemoveInOrder deletes the children in the reverse order of [Child.After] when the owner is deleted, each after those that
// came after it are gone. It returns the set. The owner gets a finalizer for it, see [ChildSet.FinalizerName].
//
// The garbage collector takes no notice of the order. So it holds only if the owner is deleted with background propagation,
// which is the default of kubectl and of most clients: with foreground propagation the collector deletes all children at
// once. What a child owns itself, such as the pods of a Deployment, may outlive it for a moment.
func (s *ChildSet[T]) RemoveInOrder() *ChildSet[T] {
	s.removeInOrder = true
	return s
}

// FinalizerName returns the finalizer that the owner needs for [ChildSet.Finalize], or nothing if there is nothing to clean
// up. [ChildSet.RemoveInOrder], [RunOnce] and [ExpandVolumes] need it. It is "children.opblocks.dev/" and the name of the set,
// or "set" if it has none. Package reconcile adds and removes it.
func (s *ChildSet[T]) FinalizerName() string {
	if !s.removeInOrder && !s.needsRelease() {
		return ""
	}
	return "children.opblocks.dev/" + cmp.Or(s.name, "set")
}

// needsRelease reports whether a child may hold something that the garbage collector does not let go: see [RunOnce] and
// [ExpandVolumes].
func (s *ChildSet[T]) needsRelease() bool {
	return slices.ContainsFunc(s.children, func(c *Child[T]) bool {
		return c != nil && (c.options.runOnce || c.options.expandVolumes) // nil is a mistake, which Reconcile returns
	})
}

// Finalize deletes the children of an owner that is being deleted, in the order of [ChildSet.RemoveInOrder], if that was
// called. The error is a [*WaitingError] until they are gone: the event of a child's deletion triggers the next reconcile.
// Before that it removes the finalizers from the Jobs of [RunOnce], and deletes the pods that [ExpandVolumes] has orphaned.
// Package reconcile calls it; in a reconciler of your own, add the finalizer before you call Reconcile, and call Finalize
// when the owner is being deleted.
func (s *ChildSet[T]) Finalize(ctx context.Context, c client.Client, obj T) error {
	if s.mistake != nil {
		return s.mistake
	}
	o, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	o.set = s.name
	if err := errors.Join(s.releaseRuns(ctx, &o), s.abandonExpansions(ctx, &o, nil)); err != nil || !s.removeInOrder {
		return err
	}
	found, _, err := s.listWritten(ctx, &o)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := s.deleteInOrder(ctx, &o, found, "removed with "+o.String()); err != nil {
		return err
	}
	names := make([]string, len(found))
	for i, w := range found {
		names[i] = w.kind.describe(w.object)
	}
	return &WaitingError{reason: reasonTerminating, message: fmt.Sprintf("removed with %s: %s; waits for their deletion", &o, enumerate(names))}
}
