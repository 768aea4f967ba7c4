package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// place is the path of a field in all objects of a kind.
type place struct{ kind, path string }

// takeAllocations moves changes from v.Wrong to v.Timing if several objects of one kind have exchanged their values at the same path. Such
// values are given in the order in which the objects come, and the objects came in another order.
func (v *Verdict) takeAllocations() {
	byPlace := map[place][]Change{}
	var places []place
	for _, c := range v.Wrong {
		kind, _, _ := strings.Cut(c.Object, " ")
		at := place{kind, c.Path}
		if c.Object == External || c.Path == "" || isAbsent(c.Want) || isAbsent(c.Got) {
			continue
		}
		if byPlace[at] == nil {
			places = append(places, at)
		}
		byPlace[at] = append(byPlace[at], c)
	}
	for _, at := range places {
		changes := byPlace[at]
		if !areExchanged(changes) {
			continue
		}
		v.Timing = append(v.Timing, Timing{Line: allocationLine(at, changes), Object: changes[0].Object, Cause: changes[0].Cause()})
		v.Wrong = slices.DeleteFunc(v.Wrong, func(c Change) bool {
			return slices.ContainsFunc(changes, func(other Change) bool { return c.Object == other.Object && c.Path == other.Path })
		})
	}
}

// areExchanged reports whether there are several changes, and the objects have the wanted values of each other.
func areExchanged(changes []Change) bool {
	left := make([]any, len(changes))
	for i, c := range changes {
		left[i] = c.Want
	}
	for _, c := range changes {
		i := slices.IndexFunc(left, func(want any) bool { return reflect.DeepEqual(want, c.Got) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return len(changes) > 1
}

// maxExchanged is the largest number of objects that an allocationLine names.
const maxExchanged = 3

func allocationLine(at place, changes []Change) string {
	var parts []string
	for _, c := range changes[:min(len(changes), maxExchanged)] {
		values := short(c.Want, c.Got)
		parts = append(parts, fmt.Sprintf("%s has %s without faults and %s here", c.Object, values[0], values[1]))
	}
	if left := len(changes) - maxExchanged; left > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", left))
	}
	return fmt.Sprintf("%s of each %s: first come, first served, and they came in another order: %s", at.path, at.kind, strings.Join(parts, ", "))
}
