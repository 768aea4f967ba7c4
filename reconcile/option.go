package reconcile

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

type stepOptions struct {
	condition   string
	optional    bool
	watches     []watch
	references  []reference
	wakes       []func(mgr ctrl.Manager, b *ctrl.Builder)
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

// Watching declares a kind that the step reads, and watches it: mapTo names the objects whose
// pass an event of obj brings. Predicates limit the events; an update whose old object matters
// must get through too.
func Watching(obj client.Object, mapTo handler.MapFunc, predicates ...predicate.Predicate) StepOption {
	return func(o *stepOptions) {
		o.watches = append(o.watches, watch{object: obj, mapTo: mapTo, predicates: predicates})
	}
}

type watch struct {
	object     client.Object
	mapTo      handler.MapFunc
	predicates []predicate.Predicate
}
