package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Action is one thing that a user does. The next action happens when the operator is quiet, except where a fault says
// otherwise. An invalid action, such as Create(nil), is an error of the scenario: [Explore] reports it as a failure, and
// [Run] fails the test.
type Action struct {
	Name string                                           // a short one, for the trace
	Do   func(ctx context.Context, c client.Client) error // must do the same in every run

	external func(External) error // instead of Do
	wait     time.Duration        // instead of Do
	then     func(*Env) error     // what must be true after it; may be nil
	spares   bool                 // see WithoutFaults
	err      error                // why the action is invalid
}

// Create returns an action that creates a copy of the object.
func Create(obj client.Object) Action {
	if isNil(obj) {
		return Action{err: errors.New("Create(nil): give it an object")}
	}
	return Action{
		Name: "create " + text.Describe(obj),
		Do: func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, obj.DeepCopyObject().(client.Object))
		},
	}
}

// Change returns an action that reads the object, calls change with it and updates it, including its status. It uses
// only the Go type, the namespace and the name of obj, and the kind if obj is unstructured.
func Change[T client.Object](obj T, change func(T)) Action {
	if isNil(obj) || change == nil {
		return Action{err: errors.New("Change with nil: give it an object and a function")}
	}
	return Action{
		Name: "change " + text.Describe(obj),
		Do: func(ctx context.Context, c client.Client) error {
			now := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
			now.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
				return err
			}
			change(now)
			return run.UpdateWithStatus(ctx, c, now)
		},
	}
}

// Delete returns an action that deletes the object of this kind, namespace and name.
func Delete(obj client.Object) Action {
	if isNil(obj) {
		return Action{err: errors.New("Delete(nil): give it an object")}
	}
	return Action{
		Name: "delete " + text.Describe(obj),
		Do: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, obj.DeepCopyObject().(client.Object))
		},
	}
}

// Do returns an action of your own. It must do the same in every run.
func Do(name string, do func(ctx context.Context, c client.Client) error) Action {
	return Action{Name: name, Do: do}
}

// DoExternal returns an action that changes something outside of the cluster. The operator gets no event for it. The
// action calls do with what [Scenario.External] returned for the run, and fails if that is not of type T. do must do
// the same in every run.
func DoExternal[T External](name string, do func(external T) error) Action {
	return Action{Name: name, external: func(external External) error {
		is, ok := external.(T)
		if !ok {
			return fmt.Errorf("it is for an External of type %T, and the scenario has one of type %T", is, external)
		}
		return do(is)
	}}
}

// Wait returns an action that lets time pass. The operator does what becomes due in this time. d must be above zero.
func Wait(d time.Duration) Action {
	if d <= 0 {
		return Action{err: fmt.Errorf("Wait(%s): give it a duration above zero", d)}
	}
	return Action{Name: fmt.Sprintf("wait %s", d), wait: d}
}

// WithoutFaults returns the action for a scenario in which [Explore] tries no fault from this action until the next one. The runs with
// faults of a large operator take minutes. If several scenarios begin with the creation of the same object, and one of them tries the
// faults there, the others need not try them again:
//
//	reconciletest.Create(shop).WithoutFaults()
//
// Faults to which the next action belongs are still tried, such as "concurrent action". Runs that compare when the operator starts do not
// change. [Report.Spared] counts the faults that are left out.
func (a Action) WithoutFaults() Action {
	a.spares = true
	return a
}

// validate returns an error if the action is invalid.
func (a *Action) validate() error {
	switch {
	case a.err != nil:
		return a.err
	case a.Do == nil && a.external == nil && a.wait == 0:
		return fmt.Errorf("the action %q does nothing: set its Do, or use Create, Change, Delete, Do, DoExternal or Wait", a.Name)
	}
	return nil
}

// simulated returns the action in the type of package run, which carries it out.
func (a *Action) simulated() run.Action {
	to := run.Action{Name: a.Name, Do: a.Do, Wait: a.wait, Spares: a.spares}
	if a.external != nil {
		to.DoExternal = func(e world.External) error { return a.external(e) }
	}
	if a.then != nil {
		to.Then = func(w *world.World) error { return a.then(newEnv(w)) }
	}
	return to
}

// isNil reports whether the interface, or the pointer in it, is nil.
func isNil(obj client.Object) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
