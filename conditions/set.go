package conditions

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set stores c in the list, in the place of the condition with its type or else at the end, and returns what is stored now
// and whether the list changed. Nothing is allocated when it did not.
//
// LastTransitionTime moves only if the status does, or if none was stored. The time of a change is c.LastTransitionTime,
// unless that is zero or just what was stored (c came from [Get] and was edited): then it is now. Whole seconds are kept,
// which is what the API keeps, so that a stored condition equals what is read back.
//
// A message longer than 32768 bytes is cut at a character and ends in "…"; bytes that are not UTF-8 become U+FFFD.
//
// A change replaces the slice and never writes into its array, which may be shared with an object in a cache.
// Nothing is reordered, and no other condition is touched.
//
// The error is [ErrInvalid], and says what the API server would refuse and what it wants instead; the list is unchanged
// then, and stored is what it was. See [Validate] for the rules.
func Set(list *[]metav1.Condition, c metav1.Condition) (stored metav1.Condition, changed bool, err error) {
	return standard.Set(list, c)
}

// Set is [Set] over a list of C. A field that C lacks, such as an observed generation, is dropped and is no change.
func (e Editor[C]) Set(list *[]C, c metav1.Condition) (stored C, changed bool, err error) {
	if list == nil {
		return stored, false, fmt.Errorf("%w %q: there is no list to set it in; pass its address, such as &obj.Status.Conditions",
			ErrInvalid, c.Type)
	}
	var old metav1.Condition
	i := e.index(*list, c.Type)
	if i >= 0 {
		stored = (*list)[i]
		old = e.adapter.Read(stored)
	}

	to := c
	to.Message = cut(c.Message)
	to.LastTransitionTime = old.LastTransitionTime
	moves := old.Status != c.Status || old.LastTransitionTime.IsZero()
	if i >= 0 && !moves && equal(old, to) {
		return stored, false, nil
	}

	if err := e.validate(to); err != nil {
		return stored, false, fmt.Errorf("%w %q: %w", ErrInvalid, c.Type, err)
	}
	at := e.moment(c.LastTransitionTime, old.LastTransitionTime)
	if moves {
		to.LastTransitionTime = at
	}
	next := e.adapter.Write(stored, to, at)
	if i >= 0 && equal(old, e.adapter.Read(next)) {
		return stored, false, nil // it differed only in what C has no field for
	}
	*list = replace(*list, i, next)
	return next, true, nil
}

// validate checks what every list needs before it asks the adapter.
func (e Editor[C]) validate(c metav1.Condition) error {
	if c.Type == "" {
		return errors.New("type: " + typeHint)
	}
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
		return e.adapter.Validate(c)
	default:
		return fmt.Errorf("status: %q is not a status: %s", c.Status, statusHint)
	}
}

// moment is the time of a change as the API will give it back: whole seconds, in the local zone.
func (e Editor[C]) moment(given, old metav1.Time) metav1.Time {
	t := given.Time
	if given.IsZero() || given.Equal(&old) {
		t = e.now()
	}
	return metav1.NewTime(t.Truncate(time.Second).Local())
}

// replace returns a copy of the list with c at index i, or at the end when i is negative.
func replace[C any](list []C, i int, c C) []C {
	if i < 0 {
		i = len(list)
	}
	next := make([]C, max(len(list), i+1))
	copy(next, list)
	next[i] = c
	return next
}

func equal(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}
