package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
)

// setConditions stores in the object what the conditions become by the outcomes.
func (p *pass[T]) setConditions(outcomes []outcome) error {
	list, err := p.status.list(p.obj)
	if list == nil || err != nil {
		return err
	}
	if p.history != nil {
		return appendHistory(list, toHistory(outcomes), p.obj.GetGeneration())
	}
	set, remove := toConditions(outcomes, p.before.GetDeletionTimestamp() != nil)
	for _, conditionType := range remove {
		list.Remove(conditionType)
	}
	return storeConditions(list, set, p.obj.GetGeneration())
}

// The conditions of the pass that are removed, depending on those that are set.
var (
	removedAlways      = []string{conditions.Paused}
	removedReady       = []string{conditions.Paused, conditions.Reconciling, conditions.Stalled}
	removedReconciling = []string{conditions.Paused, conditions.Stalled}
	removedStalled     = []string{conditions.Paused, conditions.Reconciling}
)

// toConditions returns which conditions of an object are set and which are removed by the outcomes of its steps. All others
// stay as they are. Reconciling and Stalled follow kstatus: they are either True or removed.
func toConditions(outcomes []outcome, deleting bool) (set []metav1.Condition, remove []string) {
	worst, known := succeeded, true
	size := 1 // for Ready: a pass that succeeds allocates no more than it needs
	for i := range outcomes {
		if outcomes[i].step.condition != "" {
			size++
		}
	}
	set = make([]metav1.Condition, 0, size)
	for i := range outcomes {
		o := &outcomes[i]
		switch {
		case !o.isKnown(): // the next pass, or another writer, knows soon
			known = known && !o.counts(deleting)
			continue
		case o.step.condition != "":
			set = append(set, o.condition())
		}
		if o.counts(deleting) {
			worst = max(worst, o.state)
		}
	}
	if !known {
		return set, removedAlways
	}
	ready := summarize(outcomes, worst, deleting)
	set = append(set, ready)
	switch worst {
	case skipped, waiting, failed:
		ready.Type, ready.Status = conditions.Reconciling, metav1.ConditionTrue
		return append(set, ready), removedReconciling
	case stalled:
		ready.Type, ready.Status = conditions.Stalled, metav1.ConditionTrue
		return append(set, ready), removedStalled
	}
	return set, removedReady
}

// isKnown reports whether conditions may change by the outcome.
func (o *outcome) isKnown() bool { return o.state != conflicted && !o.keepsConditions }

// counts reports whether the outcome counts for Ready. A cleanup is never optional.
func (o *outcome) counts(deleting bool) bool { return !o.step.optional || deleting }

// condition returns the condition that shows the outcome. If the step reports none, its type is the name of the step: then
// it is summed up but not stored.
func (o *outcome) condition() metav1.Condition {
	status := metav1.ConditionFalse
	switch o.state {
	case succeeded:
		status = metav1.ConditionTrue
	case skipped:
		status = metav1.ConditionUnknown
	}
	return metav1.Condition{Type: cmp.Or(o.step.condition, o.step.name), Status: status, Reason: o.reason, Message: o.message}
}

// summarize returns the condition Ready.
func summarize(outcomes []outcome, worst state, deleting bool) metav1.Condition {
	if worst == succeeded {
		ready := metav1.Condition{Type: conditions.Ready, Status: metav1.ConditionTrue, Reason: reasonSucceeded}
		for i := range outcomes {
			if o := &outcomes[i]; o.isKnown() && o.counts(deleting) && o.reason != reasonSucceeded { // made by Success
				ready.Reason, ready.Message = o.reason, o.message
			}
		}
		return ready
	}
	// The worst comes first: a failure says more than what waits for it.
	sorted := slices.Clone(outcomes)
	slices.SortStableFunc(sorted, func(a, b outcome) int { return int(b.state) - int(a.state) })
	var parts []metav1.Condition
	for i := range sorted {
		if o := &sorted[i]; o.isKnown() && o.counts(deleting) {
			parts = append(parts, o.condition())
		}
	}
	return conditions.Summarize(parts)
}

// storeConditions sets conditions in a list. What happened has to be visible: a reason that is not valid is replaced, and
// the message quotes it.
func storeConditions(list conditions.List, set []metav1.Condition, generation int64) error {
	var errs []error
	for _, c := range set {
		c.ObservedGeneration = generation
		_, _, err := list.Set(c)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		c.Message = fmt.Sprintf("%s (reason %q is not valid)", c.Message, c.Reason)
		c.Reason = reasonFailed
		if _, _, err := list.Set(c); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// toHistory returns what a pass appends to a history: its failures. All else the steps append themselves.
func toHistory(outcomes []outcome) []metav1.Condition {
	var entries []metav1.Condition
	for i := range outcomes {
		o := &outcomes[i]
		if o.keepsConditions || o.state != failed && o.state != stalled {
			continue
		}
		entry := o.condition()
		entry.Type = cmp.Or(o.step.condition, camelCase(o.step.name))
		entries = append(entries, entry)
	}
	return entries
}

func appendHistory(list conditions.List, entries []metav1.Condition, generation int64) error {
	var errs []error
	for _, entry := range entries {
		entry.ObservedGeneration = generation
		if _, _, err := list.Set(entry); err != nil {
			errs = append(errs, fmt.Errorf("history: %w", err))
		}
	}
	return errors.Join(errs...)
}

// readyOf returns the condition Ready of an object. Its status is empty if there is none.
func (p *pass[T]) readyOf(obj T) metav1.Condition {
	list, err := p.status.list(obj)
	if list == nil || err != nil {
		return metav1.Condition{}
	}
	ready, _ := list.Get(conditions.Ready)
	return ready
}

// measured returns the conditions of an object that the metrics show. Of a history that is the last entry, since the others
// are past, and since there may be only one series of each type.
func (r *Reconciler[T]) measured(obj client.Object) []metav1.Condition {
	list, err := r.status.list(obj)
	if list == nil || err != nil {
		return nil
	}
	all := list.All()
	if r.history != nil && len(all) > 0 {
		return all[len(all)-1:]
	}
	return all
}
