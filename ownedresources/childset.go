package ownedresources

import (
	"context"
	"reflect"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/set"
)

// ChildSet applies the children of a T, prunes the children that are not desired any more, and watches them. Use [Ensure] to make one, once
// and not in every pass. It is safe for concurrent use.
//
// A ChildSet implements Step and Watcher of package reconcile. It works in other reconcilers too: call its Reconcile in yours, and its
// SetupWithBuilder before the Complete of your builder. When the event of an object's deletion comes, the ChildSet forgets the object.
//
// With a manager, a ChildSet emits events on the owner, with the reasons Created, Applied, Recreated and Deleted: at
// most one of each in a reconcile. The metric opblocks_applies_total counts what it did.
//
// If another writer changes a child back again and again, the first six writes are made at once. Later ones are delayed, by 2 seconds at
// first and by 5 minutes at most. While one is delayed the error is a [*WaitingError] with the reason WriteLoop. A warning event on the
// owner and the metric opblocks_write_loop name the fields. The same holds if another writer deletes what the set creates, creates what it
// prunes, or replaces a recreated child by another object.
type ChildSet[T client.Object] struct{ set *set.Set }

// Ensure returns a [ChildSet] of these children. It sends no request; [ChildSet.Reconcile] does. A mistake in the children,
// such as a cycle of [Child.After], is an error of SetupWithBuilder and of Reconcile.
func Ensure[T client.Object](children ...AnyChild[T]) *ChildSet[T] {
	return &ChildSet[T]{set.New(reflect.TypeFor[T](), untyped(children))}
}

// SetName names the set. Call it before the first use. Package reconcile calls it with the name of the step. If one
// owner has two sets with children of the same kind, the sets need different names. Otherwise each would prune the
// children of the other.
func (s *ChildSet[T]) SetName(name string) { s.set.Name = name }

// SetFormerNames tells the set which names it had in earlier releases, "" for none. Call it before the first use.
// Package reconcile calls it with the FormerNames of the step. The set prunes objects that it wrote under these
// names, and [ChildSet.Finalize] removes them. Every child that is still desired is applied once, to store the
// present name.
func (s *ChildSet[T]) SetFormerNames(names ...string) { s.set.FormerNames = names }

// Reconcile creates and applies the children of obj, prunes the objects that it wrote before and that are not desired any more, and checks
// whether all children are ready. If nothing has changed, it sends no request. A child that fails does not stop the others. The order is
// set by [Child.After].
//
// The error joins the errors of all children: the errors of [Apply], the errors of the functions that build children
// and read inputs, and [*FailedError]. If none of these occurs, but a child is not ready yet, waits for another one, or
// waits for an object that an input reads, the error is a [*WaitingError]. If there is any other error than a
// [*WaitingError], nothing is pruned. If a child could not be built, no object of its kind is pruned.
//
// Before any request, it returns an error for each object that is nil, has no name, or has the same kind and name as another one, and for
// each object that the garbage collector would delete at once: see [Apply]. Such objects are not written. All others are written.
//
// In package reconcile the set prunes at the end of a reconcile, after all steps, if each step succeeded or waits. So a child can move
// from one set to another.
func (s *ChildSet[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	return s.set.Reconcile(ctx, c, obj)
}

// Watched returns an empty object for each child, of the child's kind. Package reconcile allows steps to read these kinds.
func (s *ChildSet[T]) Watched() []client.Object { return s.set.Watched() }

// RemoveInOrder deletes the children in the reverse order of [Child.After] when the owner is deleted: a child is
// deleted once the children that were created after it are gone. It returns the set. The owner needs a finalizer: see
// [ChildSet.FinalizerName].
//
// The garbage collector ignores the order. So the order holds only if the owner is deleted with background
// propagation, which is the default of kubectl and of most clients: with foreground propagation the collector deletes
// all children at once. What a child owns itself, such as the pods of a Deployment, may outlive it for a moment.
func (s *ChildSet[T]) RemoveInOrder() *ChildSet[T] {
	s.set.RemoveInOrder = true
	return s
}

// FinalizerName returns the finalizer that the owner needs for [ChildSet.Finalize], or "" if there is nothing to clean up. Only sets with
// [ChildSet.RemoveInOrder], [Child.Anywhere], [Child.Retain], [Child.RunOnce] or [Child.ExpandVolumes] need one. The finalizer is
// "children.opblocks.dev/" and the name of the set, or "set" if it has none. Package reconcile adds and removes it. In a reconciler of your
// own, add it before the first Reconcile and remove it when Finalize has returned nil.
func (s *ChildSet[T]) FinalizerName() string { return s.set.FinalizerName() }

// FormerFinalizerNames returns the finalizers that the set had under its earlier names ([ChildSet.SetFormerNames]).
// [ChildSet.Finalize] cleans up for them too. Package reconcile replaces them by the present finalizer. In a
// reconciler of your own, remove them when you add the present finalizer (finalizers.Replace does both in one request),
// and after Finalize has returned nil.
func (s *ChildSet[T]) FormerFinalizerNames() []string { return s.set.FormerFinalizerNames() }

// Finalize deletes the children of an owner that is being deleted, if nobody else deletes them: the children with the
// option [Child.Anywhere], or with [ChildSet.RemoveInOrder] all children, in order. Children that [Child.Retain] keeps stay. Before
// that, Finalize removes the finalizers from the Jobs of [Child.RunOnce], and deletes the pods that [Child.ExpandVolumes] has
// orphaned. Until all of these are gone, the error is a [*WaitingError], and the event of a child's deletion triggers
// the next reconcile. Package reconcile calls it.
func (s *ChildSet[T]) Finalize(ctx context.Context, c client.Client, obj T) error {
	return s.set.FinalizeOwner(ctx, c, obj)
}

// SetupWithBuilder watches the children and what their inputs read, so that their events enqueue the owner. It also
// registers the metrics, and takes the manager's event recorder, API reader and cache. It returns an error if the
// manager's scheme does not have the type of a child, and for a mistake in the children. Package reconcile does the
// same.
func (s *ChildSet[T]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	return s.set.SetupWithBuilder(mgr, b)
}
