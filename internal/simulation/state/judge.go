package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/internal/diff"
)

// References are the states to which runs without faults lead at one moment. A run with faults must lead to one of them.
type References struct {
	Baseline State   // of the run without faults
	Late     State   // of the run in which the operator starts late; nil if there is none for the moment
	Random   Places  // at which two runs without faults differ
	Near     []State // of moments shortly before and after, between which the user does nothing
}

// Places are places in a state: paths by object. The path "" is the object itself.
type Places map[string][]string

// PlacesOf returns the places at which two states differ.
func PlacesOf(a, b State) Places {
	places := Places{}
	for _, c := range Compare(a, b) {
		places[c.Object] = append(places[c.Object], c.Path)
	}
	return places
}

// overlap reports whether the change is at one of the places, within one, or around one.
func (p Places) overlap(c *Change) bool {
	return slices.ContainsFunc(p[c.Object], func(path string) bool { return isWithin(path, c.Path) || isWithin(c.Path, path) })
}

// isWithin reports whether a path is the other one or below it.
func isWithin(path, of string) bool {
	rest, found := strings.CutPrefix(path, of)
	return found && (rest == "" || of == "" || rest[0] == '.' || rest[0] == '[')
}

// Verdict is what a state is accused of. The zero value is an acquittal.
type Verdict struct {
	Wrong  []Change // differences from the nearer reference at places where the references agree
	Timing []string // lines about the other differences, which depend on when the operator starts
}

// Judge compares a state with the references. It is right if it equals one of them. Else it is judged against the nearer
// one. Where the references themselves differ, neither is blamed, and what rightly differs is left out: what is random, a
// history, a finished Job. What is so shortly before or after is left out too.
func (r *References) Judge(got State) Verdict {
	changes := Compare(r.Baseline, got)
	if len(changes) == 0 {
		return Verdict{}
	}
	differ, late := Places{}, []Change(nil)
	if r.Late != nil {
		if late = Compare(r.Late, got); len(late) == 0 {
			return Verdict{}
		}
		differ = PlacesOf(r.Baseline, r.Late)
		if len(late) < len(changes) {
			changes = late
		}
	}
	var v Verdict
	for _, c := range changes {
		switch {
		case r.Random.overlap(&c) || r.isNear(&c):
		case !differ.overlap(&c):
			v.Wrong = append(v.Wrong, c)
		case !r.rightlyDiffers(&c):
			v.Timing = append(v.Timing, r.timingLine(&c))
		}
	}
	return v
}

// isNear reports whether the changed place has its value in one of the near states.
func (r *References) isNear(c *Change) bool {
	return slices.ContainsFunc(r.Near, func(s State) bool { return reflect.DeepEqual(s.at(c), c.Got) })
}

// rightlyDiffers reports whether the change is in a history, or a Job that has finished.
func (r *References) rightlyDiffers(c *Change) bool {
	if c.Path == "" && strings.HasPrefix(c.Object, "Job ") {
		return isFinished(c.Want) || isFinished(c.Got)
	}
	got, isList := c.Got.([]any)
	one, areLists := r.Baseline.at(c).([]any)
	other, allLists := r.Late.at(c).([]any)
	if !isList || !areLists || !allLists {
		return false
	}
	known := slices.Concat(one, other)
	return !slices.ContainsFunc(got, func(item any) bool {
		return !slices.ContainsFunc(known, func(k any) bool { return reflect.DeepEqual(item, k) })
	})
}

// isFinished reports whether a Job has succeeded or failed.
func isFinished(job any) bool {
	content, _ := job.(map[string]any)
	status, _ := content["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return (c["type"] == "Complete" || c["type"] == "Failed") && c["status"] == "True"
	})
}

// timingLine returns a line with the values of both references and of the state.
func (r *References) timingLine(c *Change) string {
	where := c.Object
	if c.Path != "" {
		where += ": " + c.Path
	}
	return fmt.Sprintf("%s: %s without faults, %s if the operator starts late, %s here", where,
		c.describe(r.Baseline.at(c)), c.describe(r.Late.at(c)), c.describe(c.Got))
}

// describe returns a value at the changed place. A whole object is only described as present.
func (c *Change) describe(v any) string {
	switch {
	case c.Path != "" || c.Object == External:
		return short(v)
	case isAbsent(v):
		return "absent"
	}
	return "present"
}

// at returns the value that the state has at the place of a change, diff.Absent if it has none there.
func (s State) at(c *Change) any {
	object, found := s[c.Object]
	if !found {
		return diff.Absent{}
	}
	if c.Path == "" {
		return object
	}
	value := any(diff.Absent{})
	walk(nil, object, func(path diff.Path, v any) bool {
		text := path.String()
		if text == c.Path {
			value = v
			return false
		}
		return isWithin(c.Path, text)
	})
	return value
}

// walk calls visit with each value in a JSON value, and goes on below it if visit returns true.
func walk(path diff.Path, v any, visit func(path diff.Path, v any) bool) {
	if !visit(path, v) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			walk(path.Field(key), e, visit)
		}
	case []any:
		for i, e := range v {
			walk(path.Item(itemName(i, e)), e, visit)
		}
	}
}
