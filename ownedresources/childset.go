package ownedresources

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/references"
)

// ChildSet applies the children of a T, prunes those that are not desired any more, and watches them. Use [Ensure] to
// make one, once and not in every pass. It is safe for concurrent use.
//
// A ChildSet implements Step and Watcher of package reconcile. It works in other reconcilers too: call its Reconcile in
// yours, and its SetupWithBuilder before the Complete of your builder. What a ChildSet remembers of an object is
// dropped with the event of its deletion.
//
// With a manager, a ChildSet emits events on the owner, with the reasons Created, Applied, Recreated and Deleted: at
// most one of each in a reconcile. The metric opblocks_applies_total counts what it did.
//
// If another writer changes a child back again and again, the first six writes are made at once. Later ones are
// delayed, by 2 seconds at first and by 5 minutes at most. While one is delayed the error is a [*WaitingError] with the
// reason WriteLoop. A warning event on the owner and the metric opblocks_write_loop name the fields. The same holds if
// another writer deletes what the set creates, creates what it prunes, or puts back what it recreates.
type ChildSet[T client.Object] struct{ *set }

// set is a ChildSet without the type of its owners.
type set struct {
	name          string
	formerNames   []string
	ownerType     reflect.Type
	children      []*child
	order         *order
	mistake       error // a mistake in the children
	removeInOrder bool
	applier       *applier
	cache         client.Reader     // nil without a manager
	forms         *references.Forms // nil without a manager, and in a pass of package reconcile, whose client has them
	kinds         atomic.Pointer[childKinds]
	ifServed      bool          // a child has the option IfServed
	served        servedWatches // nil without a manager
}

// Ensure returns a [ChildSet] of these children. It sends no request; [ChildSet.Reconcile] does. A mistake in the children,
// such as a cycle of [Child.After], is an error of SetupWithBuilder and of Reconcile.
func Ensure[T client.Object](children ...AnyChild[T]) *ChildSet[T] {
	return &ChildSet[T]{newSet(reflect.TypeFor[T](), untyped(children))}
}

func newSet(ownerType reflect.Type, children []*child) *set {
	s := &set{ownerType: ownerType, children: children, applier: newApplier()}
	s.order, s.mistake = newOrder(children)
	for _, c := range children {
		if c != nil {
			c.inSet, s.ifServed = true, s.ifServed || c.options.ifServed
		}
	}
	return s
}

// err returns the mistake in the children, or in a later change of a child.
func (s *set) err() error {
	if s.mistake != nil {
		return s.mistake
	}
	for i, c := range s.children {
		if c.mistake != nil {
			return fmt.Errorf("child %d, a %s: %w", i+1, c.kindName(), c.mistake)
		}
	}
	return nil
}

// newOwner returns an empty owner.
func (s *set) newOwner() client.Object {
	return reflect.New(s.ownerType.Elem()).Interface().(client.Object)
}

// SetName names the set. Call it before the first use. Package reconcile calls it with the name of the step. Two sets of
// one owner with children of the same kind need different names, or each would prune the children of the other.
func (s *set) SetName(name string) { s.name = name }

// SetFormerNames tells the set which names it had in earlier releases, "" for none. Call it before the first use.
// Package reconcile calls it with the names given to the option FormerNames of the step. The set prunes what it wrote
// under these names, and [ChildSet.Finalize] removes it. Every child that is still desired is applied once, to store
// the present name.
func (s *set) SetFormerNames(names ...string) { s.formerNames = names }

// finalizerNames returns the finalizer of the set and the finalizers of its earlier names, or nothing if it needs none.
func (s *set) finalizerNames() []string {
	if name := s.FinalizerName(); name != "" {
		return append([]string{name}, s.FormerFinalizerNames()...)
	}
	return nil
}

// Reconcile creates and applies the children of obj, prunes those that it wrote before and that are not desired any
// more, and checks whether all are ready. It sends no request if nothing has changed. All children are tried, whatever
// happens to the others, in the order of [Child.After].
//
// The error joins the errors of all children: the errors of [Apply], the errors of the functions that build children
// and read inputs, and [*FailedError]. If none of these occurs, but a child is not ready yet, waits for another one, or
// waits for an object that an input reads, the error is a [*WaitingError]. If there is any other error than a
// [*WaitingError], nothing is pruned. If a child could not be built, no object of its kind is pruned.
//
// Before any request, it returns an error for each object that is nil, has no name, or has the kind and name of another
// one, and for one that the garbage collector would delete at once: see [Apply]. Such objects are not written; all
// others are.
//
// In a pass of package reconcile the set prunes after all steps of the pass, if each of them succeeded or waits. So a
// child can move from one set to another.
func (s *ChildSet[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	return s.reconcile(ctx, c, obj)
}

func (s *set) reconcile(ctx context.Context, c client.Client, obj client.Object) error {
	if err := s.err(); err != nil {
		return err
	}
	o, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	o.set, o.formerSets, o.finalizers = s.name, s.formerNames, s.finalizerNames()
	defer s.applier.emitEvents(&o)
	kinds, err := s.kindsIn(c.Scheme())
	if err != nil {
		return err
	}
	r := reconciliation{
		set: s, ctx: ctx, client: c, owner: &o, object: s.withoutRecords(obj), kinds: kinds,
		states: make([]childState, len(s.children)), objects: make([]declared, 0, len(s.children)), ofReads: s.epochOfReads(c),
	}
	o.builtFrom = &builtFrom{owner: r.object}
	var found *settledOwner // stays nil if a function panics
	epoch := s.applier.owners.begin(o.reference.UID)
	defer func() { s.applier.owners.end(o.reference.UID, epoch, found) }()
	err = r.run()
	found = r.settled()
	return err
}

// childKinds are the kinds of a set's children under a scheme, in their order.
type childKinds struct {
	scheme   *runtime.Scheme
	kinds    []*kind
	builders []string // see opblocks.dev/builder
}

func (s *set) kindsIn(scheme *runtime.Scheme) ([]*kind, error) {
	if known := s.kinds.Load(); known != nil && known.scheme == scheme {
		return known.kinds, nil
	}
	found := &childKinds{scheme: scheme}
	for _, child := range s.children {
		var k *kind
		var err error
		if child.options.ifServed { // the API server may have no schema of it yet: see acquireServed
			k, err = found.uncompiled(child.sample, scheme)
		} else {
			k, err = s.compile(child, scheme)
		}
		if err != nil {
			return nil, err
		}
		found.kinds = append(found.kinds, k)
	}
	found.builders = s.builders(found.kinds)
	s.kinds.Store(found)
	return found.kinds, nil
}

// compile returns the kind of a child, and remembers it.
func (s *set) compile(child *child, scheme *runtime.Scheme) (*kind, error) {
	if child.configuration {
		return s.applier.kinds.ofConfiguration(child.sample, scheme)
	}
	return s.applier.kinds.of(child.sample, scheme)
}

// Watched returns an empty object for each child, of the child's kind. Package reconcile allows steps to read these kinds.
func (s *set) Watched() []client.Object {
	var kinds []client.Object
	for _, child := range s.children {
		if child != nil { // a mistake, which Reconcile returns
			kinds = append(kinds, child.empty())
		}
	}
	return kinds
}
