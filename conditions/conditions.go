package conditions

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set stores c in the list. It replaces the condition with the same type, or adds c at the end. It returns the condition
// that is stored now, and whether the list changed. If nothing changed, nothing is allocated.
//
// If the stored condition has the same status and a time, LastTransitionTime stays as it is. Otherwise it becomes
// c.LastTransitionTime. If that time is zero, it becomes the current time. If that time equals the stored time, because c
// was returned by [Get] and then edited, it becomes the current time too. Times are cut to whole seconds, as the API
// stores them. So a stored condition equals the condition that is read back.
//
// A message of more than 32768 bytes is shortened, without cutting a character in two, and ends in "…". Bytes that are
// not UTF-8 become U+FFFD.
//
// A change replaces the slice. Set never writes to the old array, because an object in a cache may share it. The order of
// the list and all other conditions stay as they are.
//
// If the API server would refuse the condition, the error wraps [ErrInvalid] (test with errors.Is) and says why; see
// [Validate] for the rules. The list is then unchanged, and stored is the condition that the list has.
func Set(list *[]metav1.Condition, c metav1.Condition) (stored metav1.Condition, changed bool, err error) {
	return standard.Set(list, c)
}

// Get returns the condition of this type, and whether there is one. If several have the type, Get returns the first.
func Get(list []metav1.Condition, conditionType string) (metav1.Condition, bool) {
	return standard.Get(list, conditionType)
}

// IsTrue reports whether there is a condition of this type with status True. It returns false if the condition is absent
// or Unknown.
func IsTrue(list []metav1.Condition, conditionType string) bool {
	return standard.IsTrue(list, conditionType)
}

// Remove removes all conditions of this type from the list, and reports whether there was one. As [Set] does, it replaces
// the slice and keeps the order. After a removal the list is never nil. If the schema requires the list, nil would be
// sent as null, which the API server refuses.
func Remove(list *[]metav1.Condition, conditionType string) (changed bool) {
	return standard.Remove(list, conditionType)
}

// Set is like the function [Set], for a list of C. Fields of c that C does not have, such as observedGeneration, are
// dropped. If c differs from the stored condition only in such fields, nothing changes.
func (e Editor[C]) Set(list *[]C, c metav1.Condition) (stored C, changed bool, err error) {
	if list == nil {
		return stored, false, errNilList(c.Type)
	}
	var old metav1.Condition
	i := e.index(*list, c.Type)
	if i >= 0 {
		stored = (*list)[i]
		old = e.adapter.Read(stored)
	}

	to := c
	to.Message = truncate(c.Message)
	to.LastTransitionTime = old.LastTransitionTime
	transition := old.Status != c.Status || old.LastTransitionTime.IsZero()
	if i >= 0 && !transition && equal(old, to) {
		return stored, false, nil
	}

	if err := e.validate(to); err != nil {
		return stored, false, fmt.Errorf("%w %q: %w", ErrInvalid, c.Type, err)
	}
	at := e.changeTime(c.LastTransitionTime, old.LastTransitionTime)
	if transition {
		to.LastTransitionTime = at
	}
	next := e.adapter.Write(stored, to, at)
	if i >= 0 && equal(old, e.adapter.Read(next)) {
		return stored, false, nil // it differs only in fields that C does not have
	}
	*list = replace(*list, i, next)
	return next, true, nil
}

// Get is like the function [Get], for a list of C.
func (e Editor[C]) Get(list []C, conditionType string) (C, bool) {
	if i := e.index(list, conditionType); i >= 0 {
		return list[i], true
	}
	var none C
	return none, false
}

// IsTrue is like the function [IsTrue], for a list of C.
func (e Editor[C]) IsTrue(list []C, conditionType string) bool {
	i := e.index(list, conditionType)
	return i >= 0 && e.adapter.Read(list[i]).Status == metav1.ConditionTrue
}

// Remove is like the function [Remove], for a list of C.
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

// index returns the index of the first condition of this type, or -1.
func (e Editor[C]) index(list []C, conditionType string) int {
	for i := range list {
		if e.adapter.Read(list[i]).Type == conditionType {
			return i
		}
	}
	return -1
}

// validate checks the type and the status, which every list needs, and then calls the adapter.
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

// changeTime returns the time of a change in the form in which the API returns it: in whole seconds and in the local time
// zone.
func (e Editor[C]) changeTime(given, stored metav1.Time) metav1.Time {
	t := given.Time
	if given.IsZero() || given.Equal(&stored) {
		t = e.now()
	}
	return metav1.NewTime(t.Truncate(time.Second).Local())
}

// replace returns a copy of the list with c at index i, or at the end if i is negative.
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
