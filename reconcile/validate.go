package reconcile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
)

// reserved are the conditions that the pass sets itself.
var reserved = []string{conditions.Ready, conditions.Reconciling, conditions.Stalled, conditions.Paused}

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
		case slices.Contains(reserved, s.name) || s.name == noStepName:
			return fmt.Errorf("a step is named %q, by which the pass itself speaks: choose another name", s.name)
		case slices.Contains(reserved, s.condition):
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

func validType(conditionType string) bool {
	return conditions.Validate(metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: reasonSucceeded, LastTransitionTime: metav1.Now(),
	}) == nil
}
