package reconcile

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// WithFilter limits the reconciler to the objects for which the function is true. Others are left
// alone, whatever brings a pass: they may be another operator's. Call it before the first pass.
//
// An object that has to be let go of must stay among ours until that is done: the function should
// look at the status as well as at the label that chooses. It must only read.
func (r *Reconciler[T]) WithFilter(ours func(obj T) bool) *Reconciler[T] {
	r.ours = ours
	return r
}

// WithFilter is [Reconciler.WithFilter]. Events bring a pass if the object was or has become ours.
func (b *Builder[T]) WithFilter(ours func(obj T) bool) *Builder[T] {
	b.reconciler.WithFilter(ours)
	is := func(obj client.Object) bool {
		typed, ok := obj.(T)
		return ok && ours(typed)
	}
	return b.WithPredicates(predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return is(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return is(e.ObjectOld) || is(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return true }, // what is remembered of it goes
		GenericFunc: func(e event.GenericEvent) bool { return is(e.Object) },
	})
}
