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

// Get returns the condition of that type and whether there is one. Of several with the same type the first counts.
func Get(list []metav1.Condition, conditionType string) (metav1.Condition, bool) {
	return standard.Get(list, conditionType)
}

// IsTrue reports whether there is a condition of that type with status True. Absent and Unknown are not true.
func IsTrue(list []metav1.Condition, conditionType string) bool {
	return standard.IsTrue(list, conditionType)
}

// Get is [Get] over a list of C.
func (e Editor[C]) Get(list []C, conditionType string) (C, bool) {
	if i := e.index(list, conditionType); i >= 0 {
		return list[i], true
	}
	var none C
	return none, false
}

// IsTrue is [IsTrue] over a list of C.
func (e Editor[C]) IsTrue(list []C, conditionType string) bool {
	i := e.index(list, conditionType)
	return i >= 0 && e.adapter.Read(list[i]).Status == metav1.ConditionTrue
}

// index is that of the first condition of the type, or -1.
func (e Editor[C]) index(list []C, conditionType string) int {
	for i := range list {
		if e.adapter.Read(list[i]).Type == conditionType {
			return i
		}
	}
	return -1
}

// Remove takes every condition of that type out of the list and reports whether there was one.
// Like [Set] it replaces the slice and keeps the order. What remains is never nil after a removal: a list that the
// schema requires would otherwise be sent as null and refused.
func Remove(list *[]metav1.Condition, conditionType string) (changed bool) {
	return standard.Remove(list, conditionType)
}

// Remove is [Remove] over a list of C.
func (e Editor[C]) Remove(list *[]C, conditionType string) (changed bool) {
	if list == nil || e.index(*list, conditionType) < 0 {
		return false
	}
	kept := make([]C, 0, len(*list)-1)
	for _, c := range *list {
		if e.adapter.Read(c).Type != conditionType {
			kept = append(kept, c)
		}
	}
	*list = kept
	return true
}
