package state

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Main returns the wrong change that probably has led to the others: a whole object if there is one, else something outside of the cluster,
// else a field outside of the status, else a field of a status. v.Wrong must not be empty.
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
// namesValues returns true, Cause also returns the values. Two changes with the same cause probably have the same reason.
func (c *Change) Cause() string {
	if c.namesValues(c.Want, c.Got) {
		values := c.describe(c.Want, c.Got)
		return fmt.Sprintf("%s: %s without faults, %s here", c.kindAndPath(), values[0], values[1])
	}
	return c.kindAndPath() + " " + c.direction()
}

// direction returns how the value of a field differs, such as "is longer here".
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

// isEmpty reports whether a value is absent, nil or an empty string.
func isEmpty(v any) bool { return isAbsent(v) || v == nil || v == "" }

var (
	indices    = regexp.MustCompile(`\[\d+\]`)
	enumerated = regexp.MustCompile(`^[A-Z][A-Za-z]{0,29}$`) // the form of an enum value in the API conventions, such as Open
)
