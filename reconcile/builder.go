package reconcile

import (
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/conditions"
)

// Builder adds a controller to a manager.
type Builder[T client.Object] struct {
	mgr        ctrl.Manager
	reconciler *Reconciler[T]
	options    controller.Options
	predicates []predicate.Predicate
}

// For declares a controller that runs the steps for every object of type T, and whenever what
// they watch changes. T is a pointer to the API type, which must be in the manager's scheme.
func For[T client.Object](mgr ctrl.Manager, steps ...NamedStep[T]) *Builder[T] {
	return &Builder[T]{mgr: mgr, reconciler: New(mgr.GetClient(), steps...)}
}

// WithOptions sets the controller's options, such as MaxConcurrentReconciles (default 1).
func (b *Builder[T]) WithOptions(options controller.Options) *Builder[T] {
	b.options = options
	return b
}

// WithConditions is [Reconciler.WithConditions].
func (b *Builder[T]) WithConditions(binder conditions.Binder) *Builder[T] {
	b.reconciler.WithConditions(binder)
	return b
}

// WithClock is [Reconciler.WithClock].
func (b *Builder[T]) WithClock(c clock.PassiveClock) *Builder[T] {
	b.reconciler.WithClock(c)
	return b
}

// WithoutStatus is [Reconciler.WithoutStatus].
func (b *Builder[T]) WithoutStatus() *Builder[T] {
	b.reconciler.WithoutStatus()
	return b
}

// WithPredicates limits which events of the object itself bring a pass, all of them together as
// builder.WithPredicates does. Deletions must get through, and changes by which the object leaves:
// see package predicates.
func (b *Builder[T]) WithPredicates(predicates ...predicate.Predicate) *Builder[T] {
	b.predicates = append(b.predicates, predicates...)
	return b
}

// Complete adds the controller to the manager.
func (b *Builder[T]) Complete() error {
	if err := b.reconciler.check(); err != nil {
		return err
	}
	with := ctrl.NewControllerManagedBy(b.mgr).For(b.reconciler.empty(), builder.WithPredicates(b.predicates...)).WithOptions(b.options)
	if err := b.reconciler.SetupWithBuilder(b.mgr, with); err != nil {
		return err
	}
	return with.Complete(b.reconciler)
}
