package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/finalizers"
	"github.com/opblocks/opblocks/internal/step"
)

// reservedConditions are the conditions that the pass sets itself.
var reservedConditions = []string{conditions.Ready, conditions.Reconciling, conditions.Stalled, conditions.Paused}

// validateSteps returns the first mistake in the steps of a reconciler, or nil.
func validateSteps[T client.Object](steps []NamedStep[T]) error {
	if len(steps) == 0 {
		return errors.New("a reconciler needs a step")
	}
	if err := validateFormerNames(steps); err != nil {
		return err
	}
	var names, conditionTypes, finalizerNames []string
	for _, s := range steps {
		switch {
		case s.name == "" || s.step == nil:
			return errors.New("every step needs a name and something to do: make it with Named")
		case slices.Contains(names, s.name):
			return fmt.Errorf("two steps are named %q", s.name)
		case slices.Contains(reservedConditions, s.name) || s.name == finalizerStep.name:
			return fmt.Errorf("a step is named %q, which the pass uses itself: choose another name", s.name)
		case slices.Contains(reservedConditions, s.condition):
			return fmt.Errorf("step %q reports the condition %q, which the pass sets itself: choose another type", s.name, s.condition)
		case s.finalizing != nil && s.finalizer == "":
			return fmt.Errorf("step %q cleans up: name its finalizer by the method Finalizer of what Named returns", s.name)
		case s.finalizing == nil && (s.finalizer != "" || s.giveUpAfter != 0):
			return fmt.Errorf("step %q has a finalizer and no method Finalize: nothing would ever remove it", s.name)
		case s.finalizer != "" && slices.Contains(finalizerNames, s.finalizer):
			return fmt.Errorf("two steps have the finalizer %q", s.finalizer)
		case s.giveUpAfter < 0:
			return fmt.Errorf("step %q gives up its cleanup after %s: give it a limit above zero, or 0 for none", s.name, s.giveUpAfter)
		case s.condition != "" && !validConditionType(s.condition):
			return fmt.Errorf("step %q reports the condition %q, which is no valid type: use CamelCase", s.name, s.condition)
		case s.condition != "" && slices.Contains(conditionTypes, s.condition):
			return fmt.Errorf("two steps report the condition %q: it would change in every pass", s.condition)
		}
		if err := validateFinalizer(s.finalizer); err != nil {
			return fmt.Errorf("step %q: %w", s.name, err)
		}
		if err := s.validateConditionTypes(conditionTypes); err != nil {
			return err
		}
		conditionTypes = append(conditionTypes, s.conditionTypes()...)
		names, conditionTypes, finalizerNames = append(names, s.name), append(conditionTypes, s.condition), append(finalizerNames, s.finalizer)
	}
	return nil
}

// validateConditionTypes returns the first mistake in the conditions that a step sets itself, or nil. others has the condition
// types of the earlier steps.
func (n NamedStep[T]) validateConditionTypes(others []string) error {
	own := n.conditionTypes()
	for i, conditionType := range own {
		switch {
		case slices.Contains(reservedConditions, conditionType):
			return fmt.Errorf("step %q sets the condition %q, which the pass sets itself: choose another type", n.name, conditionType)
		case !validConditionType(conditionType):
			return fmt.Errorf("step %q sets the condition %q, which is no valid type: use CamelCase", n.name, conditionType)
		case conditionType == n.condition || slices.Contains(others, conditionType) || slices.Contains(own[:i], conditionType):
			return fmt.Errorf("step %q sets the condition %q, which is that of a step: choose another type", n.name, conditionType)
		}
	}
	return nil
}

// validateFormerNames returns the first mistake in the options FormerNames, or nil.
func validateFormerNames[T client.Object](steps []NamedStep[T]) error {
	var former []string
	for _, s := range steps {
		if _, ok := s.step.(step.Renamed); !ok && len(s.formerNames) > 0 {
			return fmt.Errorf("step %q has FormerNames, but it stores its name nowhere: take the option away", s.name)
		}
		for _, name := range s.formerNames {
			switch {
			case slices.ContainsFunc(steps, func(other NamedStep[T]) bool { return other.name == name }):
				return fmt.Errorf("step %q has the former name %q, which is the name of a step: choose another name for that step, or do it in a later release", s.name, name)
			case slices.Contains(former, name):
				return fmt.Errorf("the former name %q is given twice", name)
			}
			former = append(former, name)
		}
		for _, finalizer := range s.formerFinalizers {
			if err := validateFinalizer(finalizer); err != nil {
				return fmt.Errorf("step %q: %w", s.name, err)
			}
			if slices.ContainsFunc(steps, func(other NamedStep[T]) bool { return other.finalizer == finalizer }) {
				return fmt.Errorf("step %q has the former finalizer %q, which a step has now: choose another name for that step", s.name, finalizer)
			}
		}
	}
	return nil
}

func validConditionType(conditionType string) bool {
	return conditions.Validate(metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: reasonSucceeded, LastTransitionTime: metav1.Now(),
	}) == nil
}

// validateFinalizer returns what is wrong with the name of a finalizer. An empty name is valid: the step has no finalizer.
func validateFinalizer(name string) error {
	if name == "" {
		return nil
	}
	// Remove is called only for its check of the name. It sends no request, because the object has no finalizers.
	_, err := finalizers.Remove(context.Background(), nil, &metav1.PartialObjectMetadata{}, name)
	return err
}
