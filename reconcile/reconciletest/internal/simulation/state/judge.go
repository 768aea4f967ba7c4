package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
)

// References are the states to which runs without faults lead at one moment. A run with faults must lead to one of them.
type References struct {
	Baseline State             // the state in the run without faults
	Late     State             // the state in the run in which the operator starts late; nil if there is none for the moment
	Random   Places            // where two runs without faults differ
	Near     []State           // states at moments shortly before and after, between which the user does nothing
	Claims   map[string]string // see [Claims]
	Removed  []string          // finished Jobs that the other writer has deleted in the run, by their keys in a state
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

// Add adds other places.
func (p Places) Add(other Places) {
	for object, paths := range other {
		p[object] = append(p[object], paths...)
	}
}

// Without returns the places that do not overlap with any of the others: neither is equal to the other, nor within it.
func (p Places) Without(other Places) Places {
	left := Places{}
	for object, paths := range p {
		for _, path := range paths {
			if c := (Change{Object: object, Path: path}); !other.overlap(&c) {
				left[object] = append(left[object], path)
			}
		}
	}
	return left
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
	Timing []Timing // the other differences
	Notes  []string // lines about what the wrong places have in common with the reference
}

// Judge compares a state with the references. If the state equals one of them, it is right. Otherwise it is judged against the reference
// with fewer differences.
//
// A change is left out if the place is random, if the state has the value of a near state there, and if the change is only that a finished
// Job was deleted or a claim never made. If the references themselves differ at the place, the change depends on timing, and neither is
// blamed: changes in a history and finished Jobs are left out then, and an object or item that both references have and the state lacks is
// wrong. Every other change is wrong.
func (r *References) Judge(got State) Verdict {
	changes := Compare(r.Baseline, got)
	if len(changes) == 0 {
		return Verdict{}
	}
	nearer, differ := r.Baseline, Places{}
	if r.Late != nil {
		late := Compare(r.Late, got)
		if len(late) == 0 {
			return Verdict{}
		}
		differ = PlacesOf(r.Baseline, r.Late)
		if len(late) < len(changes) {
			nearer, changes = r.Late, late
		}
	}
	var v Verdict
	for _, c := range changes {
		switch {
		case r.Random.overlap(&c) || r.isNear(&c) || r.isRemoved(&c) || r.isNeverMade(&c, got):
		case !differ.overlap(&c) || r.isMissing(&c):
			v.Wrong = append(v.Wrong, c)
		case !r.rightlyDiffers(&c):
			v.Timing = append(v.Timing, r.timings(&c)...)
		}
	}
	v.takeAllocations()
	v.Notes = notes(nearer, got, v.Wrong)
	return v
}

// isRemoved reports whether the change is a missing Job that had finished when the other writer deleted it, or a missing object that such a
// Job controlled. The Job need not run again.
func (r *References) isRemoved(c *Change) bool {
	if c.Path != "" || !isAbsent(c.Got) || len(r.Removed) == 0 {
		return false
	}
	return slices.Contains(r.Removed, c.Object) || slices.Contains(r.Removed, controllerOf(c.Want))
}

// controllerOf returns the key of the controller of an object, "" if it has none.
func controllerOf(object any) string {
	content, _ := object.(map[string]any)
	metadata, _ := content["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	for _, item := range references {
		reference, _ := item.(map[string]any)
		if is, _ := reference["controller"].(bool); is {
			namespace, _ := metadata["namespace"].(string)
			return fmt.Sprintf("%v %s", reference["kind"], NameOf(client.ObjectKey{Namespace: namespace, Name: fmt.Sprint(reference["name"])}))
		}
	}
	return ""
}

// notes returns lines about the objects that have wrong places.
func notes(want, got State, wrong []Change) []string {
	var lines []string
	for i, c := range wrong {
		if i > 0 && wrong[i-1].Object == c.Object || c.Path == "" {
			continue
		}
		for _, line := range reordered(want[c.Object], got[c.Object]) {
			lines = append(lines, c.Object+": "+line)
		}
	}
	return lines
}

// isMissing reports whether the state lacks an object, or an item of a list, that both references have. The references may differ in it.
func (r *References) isMissing(c *Change) bool {
	return c.isWhole() && isAbsent(c.Got) && !isAbsent(r.Baseline.at(c)) && !isAbsent(r.Late.at(c))
}

// isNear reports whether one of the near states has the state's value at the changed place.
func (r *References) isNear(c *Change) bool {
	return slices.ContainsFunc(r.Near, func(s State) bool { return reflect.DeepEqual(s.at(c), c.Got) })
}

// rightlyDiffers reports whether the change is a Job that has finished, or is in a history: a list whose entries all appear in one of the
// references.
func (r *References) rightlyDiffers(c *Change) bool {
	if c.Path == "" && strings.HasPrefix(c.Object, "Job ") {
		return isFinished(c.Want) || isFinished(c.Got)
	}
	atBaseline, atLate := r.Baseline.at(c), r.Late.at(c)
	if c.isItem() && (isAbsent(c.Want) || isAbsent(c.Got)) { // an entry that not all lists have
		return reflect.DeepEqual(c.Got, atBaseline) || reflect.DeepEqual(c.Got, atLate)
	}
	got, isList := c.Got.([]any)
	one, areLists := atBaseline.([]any)
	other, allLists := atLate.([]any)
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

// describe returns the values at the changed place. A whole object is only described as present or absent. So is an item of a list, if one
// of the values is absent.
func (c *Change) describe(values ...any) []string {
	entry := c.isItem() && slices.ContainsFunc(values, isAbsent)
	if c.Object == External || c.Path != "" && !entry {
		return short(values...)
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = "present"
		if isAbsent(v) {
			texts[i] = "absent"
		}
	}
	return texts
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
