package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Action is something that a user does. The next one comes when the operator has become quiet.
type Action struct {
	Name string // as the trace shows it; short
	Do   func(ctx context.Context, c client.Client) error

	outside func(External) error
	wait    time.Duration
	err     error // why it is none
}

// Create creates a copy of the object.
func Create(obj client.Object) Action {
	if isNil(obj) {
		return Action{err: errors.New("Create(nil): give it an object")}
	}
	return Action{
		Name: "create " + describe(obj),
		Do: func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, obj.DeepCopyObject().(client.Object))
		},
	}
}

// Change reads the object anew, changes it and writes it. Only obj's namespace and name are used.
// A change of the status is written to it as well.
func Change[T client.Object](obj T, change func(T)) Action {
	if isNil(obj) || change == nil {
		return Action{err: errors.New("Change with nil: give it an object and a function")}
	}
	return Action{
		Name: "change " + describe(obj),
		Do: func(ctx context.Context, c client.Client) error {
			now := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
				return err
			}
			change(now)
			with := now.DeepCopyObject().(T)
			if err := c.Update(ctx, now); err != nil {
				return err
			}
			if !dropsStatus(with, now) {
				return nil
			}
			with.SetResourceVersion(now.GetResourceVersion())
			return c.Status().Update(ctx, with)
		},
	}
}

// dropsStatus reports whether an answer lacks the status that was sent, since that is written apart.
func dropsStatus(sent, answer client.Object) bool {
	return !reflect.DeepEqual(statusOf(sent), statusOf(answer))
}

func hasStatus(obj client.Object) bool { return nonempty(statusOf(obj)) != nil }

func statusOf(obj client.Object) any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	return content["status"]
}

// Delete deletes the object. Only its namespace and name are used.
func Delete(obj client.Object) Action {
	if isNil(obj) {
		return Action{err: errors.New("Delete(nil): give it an object")}
	}
	return Action{
		Name: "delete " + describe(obj),
		Do: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, obj.DeepCopyObject().(client.Object))
		},
	}
}

// Do is an action of your own. It must do the same in every run.
func Do(name string, do func(ctx context.Context, c client.Client) error) Action {
	return Action{Name: name, Do: do}
}

// DoExternal changes what is outside of the cluster, of which the operator hears only by asking. It gets what
// [Scenario.External] made, and must do the same in every run.
func DoExternal[T External](name string, do func(outside T) error) Action {
	return Action{Name: name, outside: func(outside External) error {
		is, ok := outside.(T)
		if !ok {
			return fmt.Errorf("it is for an Outside of type %T, and the scenario has one of type %T", is, outside)
		}
		return do(is)
	}}
}

// Wait lets time pass, in which whatever is due comes.
func Wait(d time.Duration) Action {
	if d <= 0 {
		return Action{err: fmt.Errorf("Wait(%s): give it a duration above zero", d)}
	}
	return Action{Name: fmt.Sprintf("wait %s", d), wait: d}
}

func (a *Action) validate() error {
	switch {
	case a.err != nil:
		return a.err
	case a.Do == nil && a.outside == nil && a.wait == 0:
		return fmt.Errorf("the action %q does nothing: set its Do, or use Create, Change, Delete, Do, DoOutside or Wait", a.Name)
	}
	return nil
}

// isNil also finds a pointer that is nil.
func isNil(obj client.Object) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func describe(obj client.Object) string {
	kind := reflect.TypeOf(obj).Elem().Name()
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		kind = gvk.Kind
	}
	return kind + " " + nameOf(client.ObjectKeyFromObject(obj))
}

func nameOf(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}
