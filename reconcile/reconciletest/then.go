package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/readiness"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// Then returns the action with a check of what must be true after it. The check is called whenever the operator is quiet after the action,
// without faults and with them, unless a fault has already done the next action. It returns an error if something is not as it must be. A
// comparison of two runs cannot say which of them is right. With a check, a failure names the run that is wrong, and the line of the Then.
//
//	reconciletest.Create(shop).Then(reconciletest.Ready(shop))
func (a Action) Then(check func(env *Env) error) Action {
	switch {
	case check == nil:
		a.err = errors.Join(a.err, fmt.Errorf("the action %q has a Then(nil): give it a function", a.Name))
	case a.then != nil:
		first, second := a.then, placed(check)
		a.then = func(env *Env) error { return errors.Join(first(env), second(env)) }
	default:
		a.then = placed(check)
	}
	return a
}

// placed returns a check whose error ends with the file and the line at which the test made the check. Only functions that the test calls
// directly, such as Then, may call placed.
func placed(check func(env *Env) error) func(env *Env) error {
	_, file, line, ok := goruntime.Caller(2)
	if !ok {
		return check
	}
	return func(env *Env) error {
		err := check(env)
		if err != nil {
			err = fmt.Errorf("%w (checked at %s:%d)", err, filepath.Base(file), line)
		}
		return err
	}
}

// Ready returns a check for [Action.Then] and [Scenario.Finally]: each of the objects exists and is ready by the rules of kstatus, which
// read the status of built-in kinds. An object of another kind must have the condition Ready or Available with status True, for its
// present generation if the condition or the status names one.
func Ready(objects ...client.Object) func(env *Env) error {
	return func(env *Env) error {
		var errs []error
		for _, obj := range objects {
			if err := checkReady(env, obj); err != nil {
				errs = append(errs, fmt.Errorf("%s %w", text.Describe(obj), err))
			}
		}
		return errors.Join(errs...)
	}
}

// Has returns a check for [Action.Then] and [Scenario.Finally]: each of the objects exists, and has the fields that are given here. Further
// fields of the object are not compared, such as defaults. A zero is compared only if it is behind a pointer, or if the object is untyped.
// Items of a list that have names are compared by their names. A list of other items must be equal. Quantities are compared by their
// values: 1 equals 1000m.
//
//	reconciletest.Create(shop).Then(reconciletest.Has(&appsv1.Deployment{
//		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
//		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
//	}))
func Has(objects ...client.Object) func(env *Env) error {
	return func(env *Env) error {
		var errs []error
		for _, obj := range objects {
			if err := checkHas(env, obj); err != nil {
				errs = append(errs, fmt.Errorf("%s %w", text.Describe(obj), err))
			}
		}
		return errors.Join(errs...)
	}
}

// checkHas returns an error if the object does not exist, or lacks a field of obj.
func checkHas(env *Env, obj client.Object) error {
	now := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	now.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind()) // an untyped object needs it
	switch err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), now); {
	case apierrors.IsNotFound(err):
		return errors.New("does not exist")
	case err != nil:
		return fmt.Errorf("cannot be read: %w", err)
	}
	lines, err := state.Lacking(obj, now)
	if err == nil && len(lines) > 0 {
		err = fmt.Errorf("is not as it must be:\n  %s", strings.Join(lines, "\n  "))
	}
	return err
}

// checkReady returns an error if the object does not exist or is not ready.
func checkReady(env *Env, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, env.Scheme())
	if err != nil {
		return fmt.Errorf("has no kind: %w: add its types to the scheme", err)
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(gvk)
	switch err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), now); {
	case apierrors.IsNotFound(err):
		return errors.New("does not exist")
	case err != nil:
		return fmt.Errorf("cannot be read: %w", err)
	}
	result, err := readiness.Compute(now, gvk)
	switch {
	case err != nil:
		return err
	case result.Status != status.CurrentStatus:
		return fmt.Errorf("is not ready: %s: %s", result.Reason, result.Message)
	case isBuiltIn(gvk.Group):
		return nil
	}
	return checkCondition(now)
}

// isBuiltIn reports whether kstatus knows the kinds of a group.
func isBuiltIn(group string) bool {
	switch group {
	case "", "apps", "batch", "policy", "apiextensions.k8s.io":
		return true
	}
	return false
}

// checkCondition returns an error if an object has neither the condition Ready nor Available with status True.
func checkCondition(obj *unstructured.Unstructured) error {
	var conditions struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &conditions); err != nil {
		return fmt.Errorf("has conditions of another form: %w: check the status with a function of your own", err)
	}
	for _, conditionType := range []string{"Ready", "Available"} {
		c := meta.FindStatusCondition(conditions.Status.Conditions, conditionType)
		switch {
		case c == nil:
			continue
		case c.Status != metav1.ConditionTrue:
			return fmt.Errorf("is not ready: its condition %s is %s: %s: %s", conditionType, c.Status, c.Reason, c.Message)
		case c.ObservedGeneration != 0 && c.ObservedGeneration != obj.GetGeneration():
			return fmt.Errorf("is not ready: its condition %s is for generation %d, and it has generation %d", conditionType, c.ObservedGeneration, obj.GetGeneration())
		}
		return nil
	}
	return errors.New("is not ready: it has neither the condition Ready nor Available: if it never has one, check its status with a function of your own")
}
