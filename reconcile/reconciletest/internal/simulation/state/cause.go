package state

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Main returns the wrong change from which the others probably follow. A whole object comes first, then what is outside of the cluster,
// then a field, and a field of a status last. v.Wrong must not be empty.
func (v *Verdict) Main() Change {
	return slices.MinFunc(v.Wrong, func(a, b Change) int { return a.rank() - b.rank() })
}

func (c *Change) rank() int {
	switch {
	case c.Object == External:
		return 1
	case c.Path == "":
		return 0
	case strings.HasPrefix(c.Path, "status"):
		return 3
	}
	return 2
}

// Cause returns the probable cause of a change: the kind of the object and the path, without names and without the indices of lists. If
// namesValues returns true, it also has the values. Two changes with the same text probably have the same cause.
func (c *Change) Cause() string {
	if c.namesValues(c.Want, c.Got) {
		values := c.describe(c.Want, c.Got)
		return fmt.Sprintf("%s: %s without faults, %s here", c.kindAndPath(), values[0], values[1])
	}
	return c.kindAndPath() + " " + c.direction()
}

// direction says how the value of a field differs.
func (c *Change) direction() string {
	want, wantList := c.Want.([]any)
	got, gotList := c.Got.([]any)
	switch {
	case isEmpty(c.Got):
		return "is empty here"
	case isEmpty(c.Want):
		return "is not empty here"
	case wantList && gotList && len(got) > len(want):
		return "is longer here"
	case wantList && gotList && len(got) < len(want):
		return "is shorter here"
	}
	return "differs"
}

// isEmpty reports whether a value is absent, or nothing.
func isEmpty(v any) bool { return isAbsent(v) || v == nil || v == "" }

var (
	indices    = regexp.MustCompile(`\[\d+\]`)
	enumerated = regexp.MustCompile(`^[A-Z][A-Za-z]{0,29}$`) // a value as the API conventions ask for where there are few
)
