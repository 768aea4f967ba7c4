package state

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/opblocks/opblocks/internal/diff"
)

// Timing is a difference at a path at which the runs without faults differ from each other too, depending on when the operator starts.
type Timing struct {
	Line   string // the values of both references and of the state
	Object string
	Cause  string // see [Change.Cause]
}

// timings returns the difference at the path of the change. If only one reference has a value there, and the state has another value,
// timings returns one difference for each field in which these two values differ.
func (r *References) timings(c *Change) []Timing {
	late := r.Late.at(c)
	present := r.Baseline.at(c)
	if isAbsent(present) {
		present, late = late, present
	}
	if !isAbsent(late) || isAbsent(present) || isAbsent(c.Got) || reflect.DeepEqual(present, c.Got) {
		return []Timing{r.timing(c)}
	}
	var all []Timing
	for _, d := range differences(present, c.Got) {
		field := &Change{Object: c.Object, Path: joined(c.Path, d.Path), Want: d.Before, Got: d.After}
		if !r.isNear(field) {
			all = append(all, r.timing(field))
		}
	}
	return all
}

// joined returns the path below appended to path.
func joined(path string, below diff.Path) string {
	rest := below.String()
	if path == "" || rest == "" || rest[0] == '[' {
		return path + rest
	}
	return path + "." + rest
}

func (r *References) timing(c *Change) Timing {
	want, late := r.Baseline.at(c), r.Late.at(c)
	of := Change{Object: c.Object, Path: c.Path, Want: want, Got: c.Got}
	values := c.describe(want, late, c.Got)
	sides := fmt.Sprintf("%s without faults, %s if the operator starts late, %s here", values[0], values[1], values[2])
	cause := of.kindAndPath() + ": " + sides
	if !c.namesValues(want, late, c.Got) {
		if reflect.DeepEqual(want, c.Got) {
			of.Want = late
		}
		cause = of.kindAndPath() + " " + of.direction()
	}
	return Timing{Line: c.place() + ": " + sides, Object: c.Object, Cause: cause}
}

// namesValues reports whether the cause of the change includes its values. It does if something is present or absent, or if each value is a
// boolean or looks like one of a few values, such as Open.
func (c *Change) namesValues(values ...any) bool {
	if c.Object == External {
		return false
	}
	if entry := c.describe(values...)[0]; entry == "present" || entry == "absent" {
		return true
	}
	for _, v := range values {
		text, isText := v.(string)
		_, isSwitch := v.(bool)
		if !isAbsent(v) && !isSwitch && (!isText || !enumerated.MatchString(text)) {
			return false
		}
	}
	return true
}

// kindAndPath returns the kind of the object and the path, without names and without the indices of lists.
func (c *Change) kindAndPath() string {
	kind, _, _ := strings.Cut(c.Object, " ")
	path := indices.ReplaceAllString(c.Path, "")
	if c.Object == External { // the keys of its maps are often names
		path = Shape(path)
	}
	return strings.TrimSuffix(kind+" "+path, " ")
}
