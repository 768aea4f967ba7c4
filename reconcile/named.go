package reconcile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/conditions"
)

// NamedStep is a step with what the pass has to know of it. Make it with [Named].
type NamedStep[T client.Object] struct {
	name    string
	step    Step[T]
	cleaner Cleaner[T] // nil unless the step is one
	stepOptions
}

type stepOptions struct {
	condition   string
	optional    bool
	watches     []watch
	references  []reference
	wakes       []func(mgr ctrl.Manager, b *ctrl.Builder)
	finalizer   string
	giveUpAfter time.Duration // 0: never
}

// Option says more of a step.
type Option func(*stepOptions)

// Named gives a step its name, which stands in logs, and before its part of Ready's message when
// several steps have not succeeded and it reports no condition of its own. Names are unique in a
// reconciler.
//
// A step that has a method SetName(string) is told. ownedresources.Ensure notes the name on the
// children: one that stops being wanted in the very release in which its step is renamed stays.
func Named[T client.Object](name string, step Step[T], options ...Option) NamedStep[T] {
	n := NamedStep[T]{name: name, step: step}
	for _, o := range options {
		o(&n.stepOptions)
	}
	n.cleaner, _ = step.(Cleaner[T])
	if s, ok := step.(interface{ SetName(name string) }); ok {
		s.SetName(name)
	}
	return n
}

// Reporting shows the step's outcome as a condition of its own: True when it succeeded, False
// while it waits or fails, Unknown when an earlier step halted the pass. No other step may
// report the same type.
func Reporting(conditionType string) Option {
	return func(o *stepOptions) { o.condition = conditionType }
}

// Optional leaves the step out of Ready, Reconciling and Stalled.
func Optional() Option {
	return func(o *stepOptions) { o.optional = true }
}

// Finalizer names the finalizer of a step that cleans up ([Cleaner]), such as
// "example.com/database". It is on the object before any step runs.
func Finalizer(name string) Option {
	return func(o *stepOptions) { o.finalizer = name }
}

// GiveUpCleanupAfter bounds the step's cleanup: the first attempt that fails when this long has
// passed since the deletion is the last, a warning event says what may be left, and the object
// goes. Without it cleanup is tried for ever, and keeps the object and its namespace.
func GiveUpCleanupAfter(limit time.Duration) Option {
	return func(o *stepOptions) { o.giveUpAfter = limit }
}

// Watching declares a kind that the step reads, and watches it: mapTo names the objects whose
// pass an event of obj brings. Predicates limit the events; an update whose old object matters
// must get through too.
func Watching(obj client.Object, mapTo handler.MapFunc, predicates ...predicate.Predicate) Option {
	return func(o *stepOptions) {
		o.watches = append(o.watches, watch{object: obj, mapTo: mapTo, predicates: predicates})
	}
}

type watch struct {
	object     client.Object
	mapTo      handler.MapFunc
	predicates []predicate.Predicate
}

// watched gives all kinds that the step declares.
func (n *NamedStep[T]) watched() []client.Object {
	var kinds []client.Object
	if w, ok := n.step.(Watcher); ok {
		kinds = append(kinds, w.Watched()...)
	}
	for _, w := range n.watches {
		kinds = append(kinds, w.object)
	}
	return kinds
}

func (n *NamedStep[T]) setupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if w, ok := n.step.(Watcher); ok {
		if err := w.SetupWithBuilder(mgr, b); err != nil {
			return fmt.Errorf("watches of step %q: %w", n.name, err)
		}
	}
	for _, w := range n.watches {
		b.Watches(w.object, handler.EnqueueRequestsFromMapFunc(w.mapTo), builder.WithPredicates(w.predicates...))
	}
	for _, wake := range n.wakes {
		wake(mgr, b)
	}
	return nil
}

func validType(conditionType string) bool {
	return conditions.Validate(metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: reasonSucceeded, LastTransitionTime: metav1.Now(),
	}) == nil
}

func validateSteps[T client.Object](steps []NamedStep[T]) error {
	if len(steps) == 0 {
		return errors.New("a reconciler needs a step")
	}
	var names, conditionTypes, finalizerNames []string
	for _, s := range steps {
		switch {
		case s.name == "" || s.step == nil:
			return errors.New("every step needs a name and something to do: make it with Named")
		case slices.Contains(names, s.name):
			return fmt.Errorf("two steps are named %q", s.name)
		case slices.Contains([]string{conditions.Ready, conditions.Reconciling, conditions.Stalled, conditions.Paused}, s.condition):
			return fmt.Errorf("step %q reports the condition %q, which the pass sets itself: choose another type", s.name, s.condition)
		case s.cleaner != nil && s.finalizer == "":
			return fmt.Errorf("step %q cleans up: name its finalizer with the option Finalizer", s.name)
		case s.cleaner == nil && (s.finalizer != "" || s.giveUpAfter != 0):
			return fmt.Errorf("step %q has a finalizer and no method Finalize: nothing would ever remove it", s.name)
		case s.finalizer != "" && slices.Contains(finalizerNames, s.finalizer):
			return fmt.Errorf("two steps have the finalizer %q", s.finalizer)
		case s.condition != "" && !validType(s.condition):
			return fmt.Errorf("step %q reports the condition %q, which is no valid type: use CamelCase", s.name, s.condition)
		case s.condition != "" && slices.Contains(conditionTypes, s.condition):
			return fmt.Errorf("two steps report the condition %q: it would change in every pass", s.condition)
		}
		if err := finalizerError(s.finalizer); err != nil {
			return fmt.Errorf("step %q: %w", s.name, err)
		}
		for _, ref := range s.references {
			if t := reflect.TypeFor[T](); !t.AssignableTo(ref.from) {
				return fmt.Errorf("step %q refers from %s, and is a step of %s: no event would ever bring a pass", s.name, ref.from, t)
			}
		}
		names, conditionTypes, finalizerNames = append(names, s.name), append(conditionTypes, s.condition), append(finalizerNames, s.finalizer)
	}
	return nil
}
