// Package step has the interfaces between package reconcile and steps that have more methods than Reconcile. Package reconcile looks for
// these interfaces, and package ownedresources asserts that a set of children implements all of them. So if a method is renamed on one side
// only, the code does not compile.
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

// Named is a step that stores its name in the cluster. Package reconcile tells it the name. Any step may implement it.
type Named interface {
	SetName(name string)
}

// Renamed is a step that still finds what it stored under former names.
type Renamed interface {
	SetFormerNames(names ...string)
}

// Finalized is a step that has its own finalizer. Any step may implement it.
type Finalized interface {
	// FinalizerName returns the finalizer. If the step has nothing to clean up with its present options, the name is empty.
	FinalizerName() string
}

// FormerlyFinalized is a step that also cleans up if an object has a finalizer of the step's former names.
type FormerlyFinalized interface {
	FormerFinalizerNames() []string
}

// Forgetful is a step that remembers something about each object. Any step may implement it.
type Forgetful interface {
	// Forget is called when an object does not exist any more, and when another operator takes it over.
	Forget(name types.NamespacedName)
}

// Repeating is a step that has to do its work again if the status could not be written. Any step may implement it.
type Repeating interface {
	// StatusNotWritten is called at the end of a reconcile if the status of the object could not be written. So what the step has put into the
	// status is lost.
	StatusNotWritten(name types.NamespacedName)
}

// Hooked is a step of this module that gives package reconcile its [Hooks].
type Hooked interface {
	Hooks() Hooks
}

// Hooks are the functions by which package reconcile uses a step of this module. All are set.
type Hooks struct {
	// Self is the step itself. Another type may embed the step, and so has the same Hooks, but a Reconcile of its own, which must not be
	// skipped. So package reconcile uses Settled only if the step is Self.
	Self any
	// Settled reports whether Reconcile of obj would succeed and change nothing. It does not change obj.
	Settled func(ctx context.Context, c client.Client, obj client.Object) bool
	// Watch adds the watches of the step, except the watches of what References returns. Package reconcile calls it in place of
	// SetupWithBuilder.
	Watch func(mgr ctrl.Manager, b *ctrl.Builder) error
	// References returns which objects the step reads by name. The reconciler watches them for all steps together.
	References func() []references.Reference
	// Served returns, by kind, the watches of the kinds that the API server may not serve. Call it after Watch.
	Served func() map[schema.GroupVersionKind]*servedkinds.Watch
	// ConditionTypes returns the types of the conditions that the step sets itself. The condition Ready does not depend on them.
	ConditionTypes func() []string
	// Builds reports whether Reconcile of obj would write a child of this kind and name. It does not change obj, and writes nothing.
	Builds func(ctx context.Context, c client.Client, obj client.Object, kind schema.GroupKind, name types.NamespacedName) bool
	// Preview returns what Reconcile of obj would do to children. c refuses all writes except dry runs.
	Preview func(ctx context.Context, c client.Client, obj client.Object) ([]preview.Change, error)
}

// Planner is a manager that only plans. A reconciler adds a description of its steps, and is never started.
type Planner interface {
	AddPlanned(Planned)
}

// Planned describes the steps of a reconciler for the objects of one kind.
type Planned struct {
	Kind   schema.GroupVersionKind
	Client client.Client // the client that the steps get
	// Selects reports whether the reconciler reconciles an object. It is nil if the reconciler reconciles all objects.
	Selects    func(obj client.Object) bool
	Finalizers []string // the finalizers that the reconciler adds to an object before its steps run
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
	// CachesWhole reports whether objects of this type are read from the cache as whole objects, and not only as metadata.
	CachesWhole(obj client.Object) bool
	// Epoch returns how often the resource versions of the objects that it reads went back: see package versions.
	Epoch() uint64
}

var _ Reader = &references.Reader{}
