package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// show turns outcomes into conditions.
func (p *pass[T]) show(outcomes []outcome) error {
	list, err := p.list(p.obj)
	if list == nil || err != nil {
		return err
	}
	if p.history != nil {
		return p.tellHistory(list, outcomes)
	}
	list.Remove(conditions.Paused)
	generation := p.obj.GetGeneration()
	var errs []error
	set := func(c metav1.Condition) {
		c.ObservedGeneration = generation
		_, _, err := list.Set(c)
		if err == nil {
			return
		}
		// What happened must be seen, also where the step's words for it are not valid.
		errs = append(errs, err)
		c.Message = fmt.Sprintf("%s (reason %q is not valid)", c.Message, c.Reason)
		c.Reason = reasonFailed
		if _, _, err := list.Set(c); err != nil {
			errs = append(errs, err)
		}
	}
	raced := false
	var parts []outcomePart
	for i := range outcomes {
		o := &outcomes[i]
		var says stepOptions
		if o.step != noStep {
			says = p.steps[o.step].stepOptions
		}
		says.optional = says.optional && p.before.GetDeletionTimestamp() == nil // a cleanup is not
		if o.state == conflicted || o.unshown {
			// The next pass, or somebody else, is about to know. Until then what was said holds.
			raced = raced || !says.optional
			continue
		}
		c := metav1.Condition{Type: cmp.Or(says.condition, p.stepName(o)), Status: o.state.status(), Reason: o.reason, Message: o.message}
		if says.condition != "" {
			set(c)
		}
		if !says.optional {
			parts = append(parts, outcomePart{c, o.state})
		}
	}
	if !raced {
		p.summarize(list, parts, set)
	}
	return errors.Join(errs...)
}

// list gives the object's conditions; nil for a kind that has none.
func (p *pass[T]) list(obj T) (conditions.List, error) {
	if p.history != nil && p.status.status >= 0 {
		return p.history(obj), nil
	}
	return p.status.list(reflect.ValueOf(obj))
}

// outcomePart is what one step contributes to the summary.
type outcomePart struct {
	condition metav1.Condition
	state     state
}

func (p *pass[T]) summarize(list conditions.List, parts []outcomePart, set func(metav1.Condition)) {
	// The worst first: what failed says more than what waits for it.
	slices.SortStableFunc(parts, func(a, b outcomePart) int { return int(b.state) - int(a.state) })
	ready := metav1.Condition{Type: conditions.Ready, Status: metav1.ConditionTrue, Reason: reasonSucceeded}
	for i := range parts {
		if c := &parts[i].condition; parts[i].state == succeeded && c.Reason != reasonSucceeded {
			ready.Reason, ready.Message = c.Reason, c.Message
		}
	}
	worst := succeeded
	if len(parts) > 0 && parts[0].state != succeeded {
		worst = parts[0].state
		shown := make([]metav1.Condition, len(parts))
		for i := range parts {
			shown[i] = parts[i].condition
		}
		ready = conditions.Summarize(shown)
	}
	set(ready)
	show := func(conditionType string, is bool) {
		if is {
			set(metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message})
		} else {
			list.Remove(conditionType)
		}
	}
	show(conditions.Reconciling, worst == waiting || worst == failed || worst == skipped)
	show(conditions.Stalled, worst == terminal)
}

func (s state) status() metav1.ConditionStatus {
	switch s {
	case succeeded:
		return metav1.ConditionTrue
	case skipped:
		return metav1.ConditionUnknown
	default:
		return metav1.ConditionFalse
	}
}

// ready gives whether an object is shown as ready, and the message of that.
func (p *pass[T]) ready(obj T) (is bool, message string) {
	list := p.conditions(obj)
	if list == nil {
		return false, ""
	}
	c, _ := list.Get(conditions.Ready)
	return c.Status == metav1.ConditionTrue, c.Message
}

// conditions is nil where there are none.
func (p *pass[T]) conditions(obj T) conditions.List {
	list, err := p.list(obj)
	if err != nil {
		return nil
	}
	return list
}
