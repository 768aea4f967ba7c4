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

// keepWhileYielding keeps the conditions while a step continues its work in later passes. It does so only if the conditions are about the
// present spec and no step has failed.
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

// notesOf returns the conditions that steps have set by SetCondition. It leaves out the conditions of a step that met
// a conflict: the next pass sets them.
func notesOf(outcomes []outcome, notes []note) (set []metav1.Condition) {
	for _, n := range notes {
		if slices.ContainsFunc(outcomes, func(o outcome) bool { return o.step == n.step && o.setsConditions() }) {
			set = append(set, n.condition)
		}
	}
	return set
}

// These condition types are removed in a pass. Paused is always removed, because no step runs for a paused object.
var (
	removedAlways = []string{conditions.Paused}
	removedBeside = map[string][]string{ // by the condition that is set in addition to Ready
		"":                     {conditions.Paused, conditions.Reconciling, conditions.Stalled},
		conditions.Reconciling: {conditions.Paused, conditions.Stalled},
		conditions.Stalled:     {conditions.Paused, conditions.Reconciling},
	}
)

// toConditions returns which conditions of an object have to be set and which types have to be removed, according to the
// outcomes of its steps. All other conditions stay as they are. Reconciling and Stalled follow kstatus: they are either
// True or removed. If the outcome of a step that is not optional sets no conditions, then Ready, Reconciling and Stalled
// stay as they are.
func toConditions(outcomes []outcome, deleting bool) (set []metav1.Condition, remove []string) {
	worst, complete := succeeded, true
	size := 1 // 1 is for Ready; a pass that succeeds allocates no more than it needs
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

// setsConditions reports whether conditions are set for the outcome. After a conflict, the next pass sets them. After
// [KeepConditions], another writer sets them.
func (o *outcome) setsConditions() bool { return o.state.ending().status != "" && !o.keepsConditions }

// counts reports whether Ready, Reconciling and Stalled depend on the outcome. They do not depend on an optional
// step, except on its cleanup.
func (o *outcome) counts(deleting bool) bool { return !o.step.optional || deleting }

// condition returns the condition for the outcome. If the step does not report a condition, its type is the name of the
// step. Such a condition is only used for the message of Ready, and is not stored.
func (o *outcome) condition() metav1.Condition {
	return metav1.Condition{Type: cmp.Or(o.step.condition, o.step.name), Status: o.state.ending().status, Reason: o.reason, Message: o.message}
}

// readyCondition returns the condition Ready, which sums up the outcomes of all steps that are not optional.
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
	// The worst outcome comes first: the message of a failure is more useful than the messages of the steps that wait
	// for it.
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
// with the reason Failed and a message that quotes the invalid reason. It then also returns an error.
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

// toHistory returns the entries that a pass appends to a history: one for each failure. The steps append everything
// else themselves.
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

// readyOf returns the condition Ready of an object. If the object does not have it, the result has an empty status.
func (e *engine) readyOf(obj client.Object) metav1.Condition {
	list, err := e.status.Conditions(obj)
	if list == nil || err != nil {
		return metav1.Condition{}
	}
	ready, _ := list.Get(conditions.Ready)
	return ready
}

// measured returns the conditions of an object that the metrics show. If a type occurs twice, it returns only the
// first: with two series of the same labels, the metrics endpoint would return an error. For a history it returns
// only the last entry, because the others are past.
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
