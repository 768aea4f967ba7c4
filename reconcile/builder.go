package reconcile

import (
	"context"
	"errors"
	"maps"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/internal/servedkinds"
	"github.com/opblocks/opblocks/internal/step"
	"github.com/opblocks/opblocks/reconcile/internal/turns"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// For returns a reconciler of the manager for all objects of type T. [Reconciler.Complete] adds its controller to the
// manager. An event of the object triggers a pass (one reconcile of the object), and so does an event of an object that
// the steps watch. T is a pointer to the API type, which must be in the scheme of the manager.
func For[T client.Object](mgr ctrl.Manager, steps ...NamedStep[T]) *Reconciler[T] {
	r := New(mgr.GetClient(), steps...)
	r.mgr = mgr
	return r
}

// WithClock sets the clock, for tests. The times of conditions, the end of a pause and [NamedStep.GiveUpCleanupAfter] are measured
// with it. The default is the real clock.
func (r *Reconciler[T]) WithClock(c clock.PassiveClock) *Reconciler[T] {
	r.clock, r.writes = c, ownwrites.New(c)
	return r
}

// WithConditions is for a kind whose conditions are not metav1.Condition. Pass [conditions.NewEditor] with an
// adapter of their type. The clock of the editor sets the times of these conditions ([conditions.Editor.WithClock]).
// The clock of [Reconciler.WithClock] does not.
func (r *Reconciler[T]) WithConditions(binder conditions.Binder) *Reconciler[T] {
	r.binder = binder
	return r
}

// WithoutStatus is for a kind whose status belongs to another controller. The reconciler does not write the status,
// so only logs and events show how the steps end. The steps must not report conditions.
func (r *Reconciler[T]) WithoutStatus() *Reconciler[T] {
	r.withoutStatus = true
	return r
}

// WithHistory is for a kind whose conditions are a history, to which the steps append entries. list returns the history of an
// object: make it with [conditions.History]. The pass appends only pauses and failures, which the steps cannot append. The
// entry of a failure has the status False. Its type is the type of [NamedStep.Reporting], or the name of the step in CamelCase if
// the step reports no condition. The pass sets neither Ready nor Reconciling nor Stalled. A step that waits or succeeds appends
// its own entry, if any.
//
// A step must not append an entry in a pass in which it fails. Otherwise every pass would append both that entry and the failure.
func (r *Reconciler[T]) WithHistory(list func(obj T) conditions.List) *Reconciler[T] {
	r.history = list
	return r
}

// WithFilter limits the reconciler to objects for which the function returns true. A pass over any other object does
// nothing, because the object may belong to another operator. With [For], an event of the object triggers a pass if
// the function returns true for the object. For an update it is enough that the function returns true for the old
// object.
//
// The function must only read the object, and must not keep it. If a label selects the objects, the function should
// also check the status: if an object loses the label, the function should return true until the cleanup of the
// object has finished.
func (r *Reconciler[T]) WithFilter(ours func(obj T) bool) *Reconciler[T] {
	r.filter = nil
	if ours != nil {
		r.filter = func(obj client.Object) bool { typed, ok := obj.(T); return ok && ours(typed) }
	}
	return r
}

// WithRetries sets after which delays a pass is repeated, such as Retries{Stalled: time.Minute}. A delay of less than a
// millisecond is an error of Complete, and so is a First that is longer than Longest.
func (r *Reconciler[T]) WithRetries(retries Retries) *Reconciler[T] {
	r.retries = retries
	return r
}

// WithTurns limits the work of one pass. After this number of calls, or when this time has passed since the first call, [Yield] and the
// steps of package external end the pass, and a later pass continues the work. Objects of all namespaces share the workers of a
// controller, so an object with thousands of calls to make must not keep the others waiting. The default is 100 calls and 1 second. Fewer
// than one call, or less than a millisecond, is an error of Complete.
func (r *Reconciler[T]) WithTurns(calls int, length time.Duration) *Reconciler[T] {
	r.turns = turns.Bounds{Calls: calls, Time: length}
	return r
}

// WithRecorder sets the recorder of events, such as the recorder of a test. The default is the manager's.
func (r *Reconciler[T]) WithRecorder(recorder events.EventRecorder) *Reconciler[T] {
	r.recorder = recorder
	return r
}

// WithTracer sets the OpenTelemetry tracer of the reconciler. Each pass gets a span. Its children are a span for each
// step that runs, for each cleanup, and for the work that a step does after all steps, such as pruning. Without a tracer,
// which is the default, a pass allocates nothing for tracing.
//
// A step is called with the context of its span. Spans that the step starts with this context become children of the
// span of the step. Spans of API requests do too, if the transport of the manager's rest.Config starts them.
//
// The attributes of a pass are k8s.object.kind, k8s.namespace.name, k8s.object.name, opblocks.reconcile_id (the
// reconcileID of the log), opblocks.result, opblocks.reason and opblocks.requeue_after (in seconds, absent if only an
// event triggers the next pass). The attributes of a step are opblocks.step, opblocks.result and opblocks.reason. The
// status of a span is Error if its result is failed or stalled. A span has no message: messages of errors may quote
// values of the spec.
func (r *Reconciler[T]) WithTracer(tracer trace.Tracer) *Reconciler[T] {
	r.tracer = passTracer{tracer}
	return r
}

// WithOptions sets the options of the controller, such as MaxConcurrentReconciles (default 1). It needs a reconciler made by
// [For]. With a builder of your own, call WithOptions of the builder.
//
// A RateLimiter is an error of Complete: controller-runtime uses it only after a reconcile that returns an error, and this
// package does not return the errors of its steps. [Reconciler.WithRetries] sets the delays.
func (r *Reconciler[T]) WithOptions(options controller.Options) *Reconciler[T] {
	r.options, r.needsFor = options, "WithOptions"
	return r
}

// WithPredicates limits which events of the object itself trigger a pass: an event has to pass all predicates. Deletions
// must pass. If an update makes an object stop matching, that update must pass too: see package predicates. WithPredicates
// needs a reconciler made by [For]. With a builder of your own, pass builder.WithPredicates to its For method.
//
// An update that changes [RequestedAnnotation], the annotation opblocks.dev/observe-interval or the pause passes even if the
// predicates drop it. This works only if the predicates pass the creation of such an object, as predicates.GenerationChanged
// does. For a builder of your own, combine the predicates by predicate.Or with
// predicates.Annotation(RequestedAnnotation).Changed and predicates.PauseChanged.
func (r *Reconciler[T]) WithPredicates(predicates ...predicate.Predicate) *Reconciler[T] {
	r.predicates, r.needsFor = append(r.predicates, predicates...), "WithPredicates"
	return r
}

var (
	errNotFor = errors.New("this reconciler has no manager: make it with For, or add it to a builder of your own with SetupWithBuilder")
	errFor    = errors.New("this reconciler was made by For: call Complete, or make it with New to add it to a builder of your own")
)

// Complete adds the controller to the manager of [For]. It returns an error for a mistake in the steps or options, and for a
// reconciler that was made by [New].
func (r *Reconciler[T]) Complete() error {
	if err := r.prepare(); err != nil {
		return err
	}
	if r.mgr == nil {
		return errNotFor
	}
	b := ctrl.NewControllerManagedBy(r.mgr).For(r.empty(), builder.WithPredicates(r.eventPredicates()...)).WithOptions(r.options)
	if err := r.setup(r.mgr, b); err != nil {
		return err
	}
	return b.Complete(r)
}

// eventPredicates returns the predicates of [Reconciler.WithPredicates] and [Reconciler.WithFilter]. An event of the object has to pass
// all of them.
func (r *Reconciler[T]) eventPredicates() (all []predicate.Predicate) {
	if len(r.predicates) > 0 {
		all = append(all, orAsked(predicate.And(r.predicates...)))
	}
	if r.filter != nil {
		all = append(all, r.filterEvents())
	}
	return all
}

// filterEvents returns the predicate of [Reconciler.WithFilter].
func (r *Reconciler[T]) filterEvents() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return r.filter(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return r.filter(e.ObjectOld) || r.filter(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return true }, // for a deletion, the reconciler forgets what it remembers of the object
		GenericFunc: func(e event.GenericEvent) bool { return r.filter(e.Object) },
	}
}

// SetupWithBuilder adds the watches of the steps to a builder of your own. Set the watch of T itself with the For method of
// the builder, before or after. SetupWithBuilder returns an error for a mistake in the steps or options, and for a
// reconciler that was made by [For].
func (r *Reconciler[T]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := r.prepare(); err != nil {
		return err
	}
	if r.mgr != nil {
		return errFor
	}
	return r.setup(mgr, b)
}

// setup adds the watches of the steps to the builder, and sets the clients and other fields of the engine from the manager.
func (r *Reconciler[T]) setup(mgr ctrl.Manager, b *ctrl.Builder) error {
	served := map[schema.GroupVersionKind]*servedkinds.Watch{}
	for i := range r.steps {
		if err := r.steps[i].setupWatches(mgr, b, r.stepClient); err != nil {
			return err
		}
		if hooks := r.steps[i].hooks; hooks.Served != nil {
			maps.Copy(served, hooks.Served())
		}
	}
	r.stepClient.addServed(served)
	if err := references.Watch(mgr, b, r.empty(), r, r.references(), r.stepClient.reader.Forms, served); err != nil {
		return err
	}
	switch m := mgr.(type) {
	case *manager:
		m.addKind(r.kind)
	case step.Planner:
		m.AddPlanned(r.planned())
	}
	r.stepClient.reader.Live = mgr.GetAPIReader()
	if r.recorder == nil {
		r.recorder = mgr.GetEventRecorder(fieldmanager.Reporter(r.kind))
	}
	if err := r.builders.Join(mgr); err != nil {
		return err
	}
	var err error
	if r.metrics, err = newMetrics(ctrlmetrics.Registry, r.kind.Kind); err != nil {
		return err
	}
	r.watching.Store(true)
	return nil
}

// planned returns the kind and the steps for package upgrade, which shows what they would change. It leaves out a user's
// step that has no method Preview.
func (r *Reconciler[T]) planned() step.Planned {
	planned := step.Planned{Kind: r.kind, Client: r.stepClient, Finalizers: r.finalizers, Selects: r.filter}
	for i := range r.steps {
		s := step.PlannedStep{Name: r.steps[i].name}
		if r.steps[i].canSettle() {
			s.Preview = r.steps[i].hooks.Preview
		} else if user, ok := r.steps[i].step.(previewer[T]); ok {
			s.Preview = func(ctx context.Context, c client.Client, obj client.Object) ([]preview.Change, error) {
				return user.Preview(ctx, c, obj.(T))
			}
		}
		planned.Steps = append(planned.Steps, s)
	}
	return planned
}

// previewer is a user's step with a method Preview, which returns what the step would change: see package upgrade.
type previewer[T client.Object] interface {
	Preview(ctx context.Context, c client.Client, obj T) ([]preview.Change, error)
}
