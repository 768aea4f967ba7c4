// Package step is the contract between package reconcile and steps that do more than Reconcile. Package reconcile looks for
// these interfaces, and package ownedresources asserts that a set of children implements all of them. So a method that is
// renamed on one side does not compile.
package step

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/internal/servedkinds"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// Named is a step that stores its name in the cluster. Any step may implement it.
type Named interface {
	SetName(name string)
}

// Renamed is a step that finds what it stored under former names.
type Renamed interface {
	SetFormerNames(names ...string)
}

// Finalized is a step that brings its own finalizer. Any step may implement it.
type Finalized interface {
	// FinalizerName returns the finalizer. If the step, as it was set up, has nothing to clean up, the name is empty.
	FinalizerName() string
}

// FormerlyFinalized is a step that also cleans up for the finalizers that it had under former names.
type FormerlyFinalized interface {
	FormerFinalizerNames() []string
}

// Forgetful is a step that remembers something of each object. Any step may implement it.
type Forgetful interface {
	// Forget is called when an object is gone, and when it is left to another operator.
	Forget(name types.NamespacedName)
}

// Repeating is a step that does its work again if the status could not be written. Any step may implement it.
type Repeating interface {
	// StatusNotWritten is called at the end of a pass over an object whose status could not be written. So what the step has put into it
	// is lost.
	StatusNotWritten(name types.NamespacedName)
}

// Hooked is a step of this module.
type Hooked interface {
	Hooks() Hooks
}

// Hooks are what package reconcile asks of a step of this module. All are set.
type Hooks struct {
	// Self is the step. A type that embeds the step also has its Hooks, but may have a Reconcile of its own, which must
	// not be skipped. So Settled counts only for Self.
	Self any
	// Settled reports whether Reconcile of obj would succeed and change nothing. It does not change obj.
	Settled func(ctx context.Context, c client.Client, obj client.Object) bool
	// Watch adds the watches of the step, but not the watches of References. It replaces SetupWithBuilder.
	Watch func(mgr ctrl.Manager, b *ctrl.Builder) error
	// References are the objects that the step reads by name. The reconciler watches them for all steps together.
	References func() []references.Reference
	// Served returns the watches of the kinds that the API server may not serve, by kind. Call it after Watch.
	Served func() map[schema.GroupVersionKind]*servedkinds.Watch
	// ConditionTypes are the types of the conditions that the step sets itself, on which Ready does not depend.
	ConditionTypes func() []string
	// Builds reports whether Reconcile of obj would write a child of this name. It does not change obj, and sends no write.
	Builds func(ctx context.Context, c client.Client, obj client.Object, kind schema.GroupKind, name types.NamespacedName) bool
	// Preview returns what Reconcile of obj would do to children. c refuses all writes but dry runs.
	Preview func(ctx context.Context, c client.Client, obj client.Object) ([]preview.Change, error)
}

// Planner is a manager that plans: it gets what a reconciler would reconcile, and never starts the reconciler.
type Planner interface {
	AddPlanned(Planned)
}

// Planned is what a reconciler would do for the objects of one kind.
type Planned struct {
	Kind   schema.GroupVersionKind
	Client client.Client // what the steps get
	// Selects reports whether the reconciler reconciles an object. It is nil if it reconciles all.
	Selects    func(obj client.Object) bool
	Finalizers []string // what the reconciler adds to an object before its steps run
	Steps      []PlannedStep
}

// PlannedStep is one step of a reconciler.
type PlannedStep struct {
	Name string
	// Preview is nil if the step cannot say what it would do.
	Preview func(ctx context.Context, c client.Client, obj client.Object) ([]preview.Change, error)
}

// Reader is the client of a step. The inputs of a set of children read with it.
type Reader interface {
	client.Reader
	// CachesWhole reports whether the object is a whole object, not metadata, that is read from the cache.
	CachesWhole(obj client.Object) bool
	// Epoch returns the epoch of the resource versions of what is read: see package versions.
	Epoch() uint64
}

var _ Reader = &references.Reader{}
