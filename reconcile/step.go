package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/internal/step"
)

// Step is one part of a pass.
//
// It may change the status of obj in memory: the pass writes the status. Other changes of obj are dropped. obj has no
// managed fields. A step must not keep obj after it has returned. It must not write obj itself, except by
// [PatchAnnotations], [PatchLabels] and [PatchOwnerReference]. After any other write, the status write of the pass would
// return a conflict, and the pass would be repeated.
//
// A nil error is success. [Wait], [Stalled], [Halt], [Success], [SuccessUntil] and [KeepConditions] return errors with other
// meanings, and errors of any package can implement [Waiter] and [Reasoner]. These errors are recognised, also if they are
// wrapped:
//   - Conflict and AlreadyExists: another writer was faster, and the pass is repeated without a warning.
//   - Forbidden: stalled, and retried with backoff for five minutes, or until the object is gone if it is being deleted.
//   - Invalid, BadRequest, MethodNotAllowed and RequestEntityTooLarge (status 422, 400, 405 and 413), and the TerminalError
//     of controller-runtime: stalled.
//
// Every other error is a failure, which is retried with backoff. If errors are joined by errors.Join or fmt.Errorf, the
// worst one decides the outcome.
type Step[T client.Object] interface {
	// Reconcile does the work of the step for obj. c reads only the kinds that the steps watch or reference.
	Reconcile(ctx context.Context, c client.Client, obj T) error
}

// Func returns a step that calls f.
func Func[T client.Object](f func(ctx context.Context, c client.Client, obj T) error) Step[T] {
	return stepFunc[T](f)
}

// stepFunc is a function that implements [Step].
type stepFunc[T client.Object] func(ctx context.Context, c client.Client, obj T) error

func (f stepFunc[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	return f(ctx, c, obj)
}

// FinalizingStep is a step that has to clean up before its object is removed, because the garbage collector does not delete
// what the step has created. It needs [NamedStep.Finalizer]; without a finalizer the reconciler returns an error.
//
// Once the object is being deleted, Finalize is called instead of Reconcile, also for a paused object. The cleanups run
// in reverse order of the steps. When Finalize succeeds, the finalizer is removed. Its errors mean the same as the
// errors of Reconcile.
//
// Finalize has to be idempotent, and must succeed if there is nothing left to remove: it runs again after a crash, and also
// for an object whose Reconcile has never finished.
type FinalizingStep[T client.Object] interface {
	Step[T]
	// Finalize removes what Reconcile has created. It returns nil when nothing is left.
	Finalize(ctx context.Context, c client.Client, obj T) error
}

// Watcher is a step that adds its own watches.
type Watcher interface {
	// Watched returns an empty object of each kind that the step reads.
	Watched() []client.Object
	// SetupWithBuilder adds the watches to the builder.
	SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error
}

// NamedStep is a step with its name. Make it with [Named]. Its methods return a copy that has one more option:
//
//	reconcile.Named("account", &account{}).Finalizer("example.com/account").Reporting("AccountReady")
type NamedStep[T client.Object] struct {
	step       Step[T]
	finalizing FinalizingStep[T] // nil unless the step implements it
	hooks      step.Hooks        // zero unless a package of this module made the step
	stepOptions
}

// stepOptions are the name and the options of a step.
type stepOptions struct {
	name        string
	condition   string
	optional    bool
	watches     []Watch
	references  []references.Reference
	finalizer   string
	giveUpAfter time.Duration // 0: never

	formerNames      []string
	formerFinalizers []string
}

// finalizerStep stands for the pass itself in an outcome, if adding the finalizers of the steps has failed.
var finalizerStep = &stepOptions{name: "finalizer"}

// Named returns a step with a name, and with the watches that it needs: see [Watching]. Wrap a function by [Func]: without it, the
// compiler says that it "cannot infer T". Names are unique in a reconciler; Ready, Reconciling, Stalled, Paused and finalizer are
// reserved. Logs, metrics and the action of events contain the name. The message of Ready comes from the steps that failed or
// wait, or, if there are none, from the skipped steps. If it comes from several steps, it names each by the condition that the
// step reports, or by the name of the step if it reports none.
//
// If the step has a method SetName(string), Named calls it with the name. A step made by ownedresources.Ensure stores its
// name in two places: on its children, to prune the children that it no longer builds, and in the name of its finalizer.
// So give a step that you rename its former names: [NamedStep.FormerNames].
//
// If the step has a method Forget(types.NamespacedName), the method should drop what the step remembers of the object. It
// is called when the object is gone, whether or not a cleanup has succeeded, and when [Reconciler.WithFilter] leaves the
// object to another operator.
//
// If the step has a method FinalizerName() string, it brings its own finalizer of that name, and needs no
// [NamedStep.Finalizer]. An empty name means that the step, as it was set up, has nothing to clean up.
func Named[T client.Object](name string, do Step[T], watches ...Watch) NamedStep[T] {
	n := NamedStep[T]{step: do, stepOptions: stepOptions{name: name, watches: watches}}
	n.finalizing, _ = do.(FinalizingStep[T])
	if s, ok := do.(step.Named); ok {
		s.SetName(name)
	}
	if s, ok := do.(step.Finalized); ok {
		n.finalizer = s.FinalizerName()
		if n.finalizer == "" {
			n.finalizing = nil
		}
	}
	if s, ok := do.(step.FormerlyFinalized); ok {
		n.formerFinalizers = s.FormerFinalizerNames()
	}
	if s, ok := do.(step.Hooked); ok {
		n.hooks = s.Hooks()
		n.references = n.hooks.References()
	}
	return n
}

// forPass returns the step without its type parameter, as a pass runs it.
func (n *NamedStep[T]) forPass() passStep {
	s := passStep{stepOptions: &n.stepOptions, self: n.step, hooks: n.hooks, reconcile: actionOf(n.step.Reconcile)}
	if n.finalizing != nil {
		s.finalize = actionOf(n.finalizing.Finalize)
	}
	return s
}

// canSettle reports whether the step can be left out of a pass in which it would find nothing to do. A type that embeds
// such a step must always run, because its Reconcile may do more.
func (n *NamedStep[T]) canSettle() bool { return n.hooks.Settled != nil && n.hooks.Self == any(n.step) }

// conditionTypes returns the types of the conditions that the step sets, except the condition of [NamedStep.Reporting].
func (n *NamedStep[T]) conditionTypes() []string {
	if n.hooks.ConditionTypes == nil {
		return nil
	}
	return n.hooks.ConditionTypes()
}

// Reporting reports the outcome of the step as a condition of this type, in CamelCase. The condition is True if the step
// succeeded, False if the step waits or failed, and Unknown if an earlier step halted the pass. If the step met a
// conflict or returned [KeepConditions], the condition keeps its last value. Two steps of a reconciler must not report
// the same type. No step may report Ready, Reconciling, Stalled or Paused, which the pass sets.
func (n NamedStep[T]) Reporting(conditionType string) NamedStep[T] {
	n.condition = conditionType
	return n
}

// Optional leaves the outcome of the step out of the conditions Ready, Reconciling and Stalled. Its cleanup is not
// optional: an object that cannot be removed is not Ready.
func (n NamedStep[T]) Optional() NamedStep[T] {
	n.optional = true
	return n
}

// Finalizer sets the finalizer of a [FinalizingStep], such as "example.com/database". The pass adds it to the object before
// any step runs.
func (n NamedStep[T]) Finalizer(name string) NamedStep[T] {
	n.finalizer = name
	n.finalizing, _ = n.step.(FinalizingStep[T])
	return n
}

// GiveUpCleanupAfter limits how long the cleanup of the step is retried. The limit is measured from the deletion. After the
// limit, the first attempt that fails or waits is the last one: the pass removes the finalizer, and a log entry and a
// warning event with the reason CleanupGivenUp name the error. See [finalizers.Finalizer]. By default the cleanup is
// retried without a limit, and the object and its namespace cannot be removed until the cleanup succeeds.
func (n NamedStep[T]) GiveUpCleanupAfter(limit time.Duration) NamedStep[T] {
	n.giveUpAfter = limit
	return n
}

// FormerNames tells a renamed step which names it had in earlier releases. It is for steps that store their names in the cluster,
// as steps made by ownedresources.Ensure do. Such a step prunes the children that it wrote under a former name, and cleans up for
// the finalizer with the former name. The first pass over an object replaces that finalizer by the present one. Without
// FormerNames, an object with the former finalizer could not be deleted: the condition Ready would have the reason
// UnknownFinalizer, and its message would name the finalizer.
//
// Keep the former names until no object has a finalizer with a former name any more, and until no child has a former name in its
// annotation opblocks.dev/set. Paused objects keep both. If you go back to the earlier release and objects may then be deleted,
// the earlier release needs FormerNames too, with the new name. To swap the names of two steps, use two releases.
//
// For a reconciler without this package see SetFormerNames of ownedresources.ChildSet.
func (n NamedStep[T]) FormerNames(names ...string) NamedStep[T] {
	n.formerNames = slices.Concat(n.formerNames, names)
	if s, ok := n.step.(step.Renamed); ok {
		s.SetFormerNames(n.formerNames...)
	}
	if s, ok := n.step.(step.FormerlyFinalized); ok {
		n.formerFinalizers = s.FormerFinalizerNames()
	}
	return n
}

// watched returns an empty object of each kind that the step watches.
func (n *NamedStep[T]) watched() []client.Object {
	var kinds []client.Object
	if w, ok := n.step.(Watcher); ok {
		kinds = append(kinds, w.Watched()...)
	}
	for i := range n.watches {
		kinds = append(kinds, n.watches[i].object)
	}
	return kinds
}

// setupWatches adds the watches of the step to the builder. Their mapping functions read through c.
func (n *NamedStep[T]) setupWatches(mgr ctrl.Manager, b *ctrl.Builder, c *stepClient) error {
	setup := func(ctrl.Manager, *ctrl.Builder) error { return nil }
	if w, ok := n.step.(Watcher); ok {
		setup = w.SetupWithBuilder
	}
	if n.hooks.Watch != nil {
		setup = n.hooks.Watch
	}
	if err := setup(mgr, b); err != nil {
		return fmt.Errorf("watches of step %q: %w", n.name, err)
	}
	for i := range n.watches {
		if err := n.watches[i].setup(b, c); err != nil {
			return fmt.Errorf("watches of step %q: %w", n.name, err)
		}
	}
	return nil
}
