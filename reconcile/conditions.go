package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/eventnote"
)

// setConditions sets and removes the object's conditions according to the outcomes.
func (p *pass) setConditions(outcomes []outcome) error {
	list, err := p.engine.status.Conditions(p.object.obj)
	if list == nil || err != nil {
		return err
	}
	if p.engine.isHistory {
		return appendHistory(list, toHistory(outcomes), p.object.obj.GetGeneration())
	}
	set, remove := toConditions(outcomes, p.object.before.GetDeletionTimestamp() != nil)
	for _, conditionType := range remove {
		list.Remove(conditionType)
	}
	return storeConditions(list, append(set, notesOf(outcomes, p.notes)...), p.object.obj.GetGeneration())
}

// keepWhileYielding keeps the conditions while a step goes on in later passes. It does so only if the conditions are about the present spec
// and no step has failed.
func keepWhileYielding(outcomes []outcome, isShown func() bool) {
	isYielding := func(o outcome) bool { return o.yields }
	hasFailed := func(o outcome) bool { return o.state.ending().isFault }
	if !slices.ContainsFunc(outcomes, isYielding) || slices.ContainsFunc(outcomes, hasFailed) || !isShown() {
		return
	}
	for i := range outcomes {
		outcomes[i].keepsConditions = outcomes[i].keepsConditions || outcomes[i].yields
	}
}

// notesOf returns the conditions of the notes whose steps set conditions. After a conflict the next pass sets them.
func notesOf(outcomes []outcome, notes []note) (set []metav1.Condition) {
	for _, n := range notes {
		if slices.ContainsFunc(outcomes, func(o outcome) bool { return o.step == n.step && o.setsConditions() }) {
			set = append(set, n.condition)
		}
	}
	return set
}

// The condition types that a pass removes. Every pass removes Paused: a paused object does not get outcomes.
var (
	removedAlways = []string{conditions.Paused}
	removedBeside = map[string][]string{ // by the condition that is set beside Ready
		"":                     {conditions.Paused, conditions.Reconciling, conditions.Stalled},
		conditions.Reconciling: {conditions.Paused, conditions.Stalled},
		conditions.Stalled:     {conditions.Paused, conditions.Reconciling},
	}
)

// toConditions returns which conditions of an object are set and which types are removed, according to the outcomes of its
// steps. All other conditions stay as they are. Reconciling and Stalled follow kstatus: they are either True or removed.
// If an outcome that counts sets no conditions, then Ready, Reconciling and Stalled stay as they are.
func toConditions(outcomes []outcome, deleting bool) (set []metav1.Condition, remove []string) {
	worst, complete := succeeded, true
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
		case !o.setsConditions():
			complete = complete && !o.counts(deleting)
			continue
		case o.step.condition != "":
			set = append(set, o.condition())
		}
		if o.counts(deleting) {
			worst = max(worst, o.state)
		}
	}
	if !complete {
		return set, removedAlways
	}
	ready := readyCondition(outcomes, worst, deleting)
	set = append(set, ready)
	summary := worst.ending().summary
	if summary != "" {
		ready.Type, ready.Status = summary, metav1.ConditionTrue
		set = append(set, ready)
	}
	return set, removedBeside[summary]
}

// setsConditions reports whether the outcome sets conditions. After a conflict the next pass sets them.
// With [KeepConditions] another writer sets them.
func (o *outcome) setsConditions() bool { return o.state.ending().status != "" && !o.keepsConditions }

// counts reports whether Ready, Reconciling and Stalled depend on the outcome. A cleanup is never optional.
func (o *outcome) counts(deleting bool) bool { return !o.step.optional || deleting }

// condition returns the condition that shows the outcome. If the step does not report a condition, the type is the name of
// the step. Such a condition is a part of Ready, and is not stored.
func (o *outcome) condition() metav1.Condition {
	return metav1.Condition{Type: cmp.Or(o.step.condition, o.step.name), Status: o.state.ending().status, Reason: o.reason, Message: o.message}
}

// readyCondition returns the condition Ready, which sums up the outcomes that count.
func readyCondition(outcomes []outcome, worst state, deleting bool) metav1.Condition {
	if worst == succeeded {
		ready := metav1.Condition{Type: conditions.Ready, Status: metav1.ConditionTrue, Reason: reasonSucceeded}
		for i := range outcomes {
			if o := &outcomes[i]; o.setsConditions() && o.counts(deleting) && o.explained {
				ready.Reason, ready.Message = o.reason, o.message
			}
		}
		return ready
	}
	// The worst comes first: the message of a failure is more useful than the messages of the steps that wait for it.
	sorted := slices.Clone(outcomes)
	slices.SortStableFunc(sorted, func(a, b outcome) int { return int(b.state) - int(a.state) })
	var parts []metav1.Condition
	for i := range sorted {
		if o := &sorted[i]; o.setsConditions() && o.counts(deleting) {
			parts = append(parts, o.condition())
		}
	}
	return conditions.Summarize(parts, conditions.Summary{})
}

// storeConditions sets conditions in a list. If the reason of a condition is not valid, storeConditions stores the condition
// with the reason Failed and a message that quotes the reason, so that people see what happened. It then returns an error as
// well.
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

// toHistory returns what a pass appends to a history: its failures. The steps append everything else themselves.
func toHistory(outcomes []outcome) []metav1.Condition {
	var entries []metav1.Condition
	for i := range outcomes {
		o := &outcomes[i]
		if o.keepsConditions || !o.state.ending().isFault {
			continue
		}
		entry := o.condition()
		entry.Type = cmp.Or(o.step.condition, eventnote.CamelCase(o.step.name))
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

// readyOf returns the condition Ready of an object. If the object does not have it, its status is empty.
func (e *engine) readyOf(obj client.Object) metav1.Condition {
	list, err := e.status.Conditions(obj)
	if list == nil || err != nil {
		return metav1.Condition{}
	}
	ready, _ := list.Get(conditions.Ready)
	return ready
}

// measured returns the conditions of an object that the metrics show. If a type occurs twice, it returns only the
// first: two series with the same labels would make the whole page of metrics an error. For a history it returns only
// the last entry: the others are past.
func (e *engine) measured(obj client.Object) []metav1.Condition {
	list, err := e.status.Conditions(obj)
	if list == nil || err != nil {
		return nil
	}
	all := list.All()
	if e.isHistory && len(all) > 0 {
		return all[len(all)-1:]
	}
	known := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(all), func(c metav1.Condition) bool {
		twice := known[c.Type]
		known[c.Type] = true
		return twice
	})
}
