package reconcile

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// WithHistory is for a kind whose conditions are a history, to which the steps themselves append:
// the function gives an object's, made by [conditions.History]. The pass appends what the steps
// cannot tell: a failure, as a condition of the step's type ([Reporting]) or name that is False,
// and a pause. It has neither Ready nor Reconciling nor Stalled, and a step that waits or succeeds
// says so itself. Call it before the first pass.
//
// A step must not append anything in a pass in which it fails, or both would be appended again
// and again.
func (r *Reconciler[T]) WithHistory(of func(obj T) conditions.List) *Reconciler[T] {
	r.history = of
	return r
}

// WithHistory is [Reconciler.WithHistory].
func (b *Builder[T]) WithHistory(of func(obj T) conditions.List) *Builder[T] {
	b.reconciler.WithHistory(of)
	return b
}

// tellHistory appends the failures.
func (p *pass[T]) tellHistory(list conditions.List, outcomes []outcome) error {
	var errs []error
	for i := range outcomes {
		o := &outcomes[i]
		if o.unshown || o.state != failed && o.state != terminal {
			continue
		}
		c := metav1.Condition{
			Type: camelCase(p.stepName(o)), Status: metav1.ConditionFalse, Reason: o.reason, Message: o.message,
			ObservedGeneration: p.obj.GetGeneration(),
		}
		if o.step != noStep && p.steps[o.step].condition != "" {
			c.Type = p.steps[o.step].condition
		}
		if _, _, err := list.Set(c); err != nil {
			errs = append(errs, fmt.Errorf("history: %w", err))
		}
	}
	return errors.Join(errs...)
}

// shown is what the metrics show: of a history the last entry, since the others were so.
func (p *pass[T]) shown(obj T) []metav1.Condition {
	list := p.conditions(obj)
	if list == nil {
		return nil
	}
	all := list.All()
	if p.history != nil && len(all) > 0 {
		return all[len(all)-1:]
	}
	return all
}
