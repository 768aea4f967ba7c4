package ownedresources

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChildSet applies the children of a T, prunes those that are not desired any more, and watches them. Use [Ensure] to make
// one, once and not in every pass. It is safe for concurrent use.
//
// A ChildSet is a Step and a Watcher of package reconcile. It works in other reconcilers too: call Reconcile in yours, and
// SetupWithBuilder where it is set up. A ChildSet forgets an object when it receives the event of its deletion.
//
// If another writer changes a child back again and again, the first six writes are made at once. Later ones are delayed, by
// 2 seconds at first and by 5 minutes at most. While one is delayed the error is a [*WaitingError] with the reason
// WriteLoop. A warning event on the owner and the metric opblocks_write_loop name the fields.
type ChildSet[T client.Object] struct {
	name     string
	children []Child[T]
	applier  *applier
	cache    client.Reader // nil without a manager
	kinds    atomic.Pointer[childKinds]
}

// Ensure returns the set of these children.
func Ensure[T client.Object](children ...Child[T]) *ChildSet[T] {
	return &ChildSet[T]{children: children, applier: newApplier()}
}

// SetName names the set. Call it before the first use. Package reconcile calls it with the name of the step. Two sets of
// one owner with children of the same kind need different names, or each would prune the children of the other.
func (s *ChildSet[T]) SetName(name string) { s.name = name }

// Reconcile creates and applies the children of obj, prunes those that it wrote before and that are not desired any more,
// and checks whether all are ready. It sends no request if nothing has changed. All children are tried, whatever happens
// to the others.
//
// The error joins the errors of all children. They are those of [Apply], those of the functions that build children, and
// [*FailedError]. If there is no such error but a child is not ready yet by the rules of kstatus, the error is a
// [*WaitingError]. Nothing is pruned if there is any error but a [*WaitingError].
//
// In a pass of package reconcile the set prunes after all steps of the pass, so a child can move from one set to another.
func (s *ChildSet[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	o, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	o.set = s.name
	defer s.applier.emitEvents(&o)
	kinds, err := s.kindsIn(c.Scheme())
	if err != nil {
		return err
	}
	var failures []error
	children := make([]declared, 0, len(s.children))
	for i := range s.children {
		child, err := s.children[i].build(obj)
		if err != nil {
			failures = append(failures, err)
		} else if child != nil {
			children = append(children, declared{kinds[i], child, &s.children[i].options})
		}
	}
	if err := s.applier.validate(&o, children); err != nil {
		return errors.Join(append(failures, err)...)
	}
	var waits []*WaitingError
	for _, child := range children {
		err := s.applyAndCheck(ctx, &o, child)
		if err == nil {
			continue
		}
		if wait, ok := errors.AsType[*WaitingError](err); ok {
			waits = append(waits, wait)
		} else {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 { // a child that could not be built, or whose replacement failed, must not be pruned
		return errors.Join(failures...)
	}
	return errors.Join(joinWaits(waits), s.prune(ctx, &o, children))
}

// applyAndCheck applies one child. It returns nil if that is ready.
func (s *ChildSet[T]) applyAndCheck(ctx context.Context, o *owner, child declared) error {
	result, err := s.applier.apply(ctx, o, child)
	if err == nil {
		return child.kind.ready(result.Object)
	}
	if _, waits := errors.AsType[*WaitingError](err); !waits {
		s.applier.record(o, child.kind, child.object, outcomeFailed, "")
	}
	if _, ok := errors.AsType[*OwnershipError](err); ok {
		s.applier.owners.setBlocked(child.object, client.ObjectKeyFromObject(o.object))
	}
	return err
}

// childKinds are the kinds of a set's children under a scheme, in their order.
type childKinds struct {
	scheme *runtime.Scheme
	kinds  []*kind
}

func (s *ChildSet[T]) kindsIn(scheme *runtime.Scheme) ([]*kind, error) {
	if known := s.kinds.Load(); known != nil && known.scheme == scheme {
		return known.kinds, nil
	}
	found := &childKinds{scheme: scheme}
	for i := range s.children {
		k, err := s.applier.kinds.of(s.children[i].sample, scheme)
		if err != nil {
			return nil, err
		}
		found.kinds = append(found.kinds, k)
	}
	s.kinds.Store(found)
	return found.kinds, nil
}
