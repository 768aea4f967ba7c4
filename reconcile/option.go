package reconcile

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

type stepOptions struct {
	condition   string
	optional    bool
	watches     []watch
	references  []reference
	finalizer   string
	giveUpAfter time.Duration // 0: never
}

// StepOption says more of a step.
type StepOption func(*stepOptions)

// Reporting shows the step's outcome as a condition of its own: True when it succeeded, False
// while it waits or fails, Unknown when an earlier step halted the pass. No other step may
// report the same type.
func Reporting(conditionType string) StepOption {
	return func(o *stepOptions) { o.condition = conditionType }
}

// Optional leaves the step out of Ready, Reconciling and Stalled.
func Optional() StepOption {
	return func(o *stepOptions) { o.optional = true }
}

// Finalizer names the finalizer of a step that cleans up ([FinalizingStep]), such as
// "example.com/database". It is on the object before any step runs.
func Finalizer(name string) StepOption {
	return func(o *stepOptions) { o.finalizer = name }
}

// GiveUpCleanupAfter bounds the step's cleanup: the first attempt that fails when this long has
// passed since the deletion is the last, a warning event says what may be left, and the object
// goes. Without it cleanup is tried for ever, and keeps the object and its namespace.
func GiveUpCleanupAfter(limit time.Duration) StepOption {
	return func(o *stepOptions) { o.giveUpAfter = limit }
}

// MapFunc returns the requests to enqueue for an event of obj. It reads other objects through r, which reads from the
// cache what a step may read. It must change neither obj nor what it reads.
type MapFunc[O client.Object] func(ctx context.Context, r client.Reader, obj O) []ctrl.Request

// Watching declares a kind that the step reads, and watches it: for each event of an object of obj's kind, the requests
// that mapTo returns are enqueued. For an update mapTo is called with the old and with the new object. Predicates limit
// the events; all of them must pass one. An update whose old object matters must pass too.
func Watching[O client.Object](obj O, mapTo MapFunc[O], predicates ...predicate.Predicate) StepOption {
	return func(o *stepOptions) {
		o.watches = append(o.watches, watch{object: obj, predicates: predicates, mapTo: func(ctx context.Context, r client.Reader, event client.Object) []ctrl.Request {
			typed, ok := event.(O)
			if !ok {
				return nil
			}
			return mapTo(ctx, r, typed)
		}})
	}
}

type watch struct {
	object     client.Object
	mapTo      MapFunc[client.Object]
	predicates []predicate.Predicate
}

func (w *watch) setup(b *ctrl.Builder, r client.Reader) {
	b.Watches(w.object, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, event client.Object) []ctrl.Request {
		return w.mapTo(ctx, r, event)
	}), builder.WithPredicates(w.predicates...))
}
