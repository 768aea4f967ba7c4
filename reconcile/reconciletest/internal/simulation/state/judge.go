package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
)

// References are the states of the runs without faults at one moment. A run with faults must lead to one of them.
type References struct {
	Baseline State             // the state in the run without faults
	Late     State             // the state in the run in which the operator starts late; nil if that run has no state at the moment
	Random   Places            // the paths at which two runs without faults differ
	Near     []State           // states shortly before and after the moment, between which the user does nothing
	Claims   map[string]string // see [Claims]
	Removed  []string          // the keys of finished Jobs that the other writer has deleted in the run
}

// Places are paths of fields, by the object's key in a state. The path "" stands for the object itself.
type Places map[string][]string

// PlacesOf returns the paths at which two states differ.
func PlacesOf(a, b State) Places {
	places := Places{}
	for _, c := range Compare(a, b) {
		places[c.Object] = append(places[c.Object], c.Path)
	}
	return places
}

// Add adds the paths of the other Places.
func (p Places) Add(other Places) {
	for object, paths := range other {
		p[object] = append(p[object], paths...)
	}
}

// Without returns the paths that do not overlap with any path in other. Two paths overlap if they are equal, or if one is below the other.
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

// overlap reports whether the change is at one of the paths, or below or above one of them.
func (p Places) overlap(c *Change) bool {
	return slices.ContainsFunc(p[c.Object], func(path string) bool { return isWithin(path, c.Path) || isWithin(c.Path, path) })
}

// isWithin reports whether path equals of, or is below it.
func isWithin(path, of string) bool {
	rest, found := strings.CutPrefix(path, of)
	return found && (rest == "" || of == "" || rest[0] == '.' || rest[0] == '[')
}

// Verdict is what is wrong with a state. The zero value means that the state is right.
type Verdict struct {
	Wrong  []Change // differences at paths at which the references agree, from the reference with fewer differences
	Timing []Timing // the other differences
	Notes  []string // lines about lists in the wrong objects that have the same items in another order
}

// Judge compares a state with the references. If the state equals one of them, it is right. Otherwise it is compared with the reference
// that has fewer differences.
//
// These changes are left out: two runs without faults differ at the path; a state in Near has the same value there; only a finished Job is
// missing that the other writer deleted; only a claim is missing that was never created.
//
// If the references agree at the path, every other change is wrong. If they differ there, the change depends on timing, and nobody knows
// which value is right. There are two exceptions. If both references have an object or an item that the state lacks, the change is wrong.
// Finished Jobs, and lists whose entries all appear in one of the references, are left out.
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
// Job controlled. Such a Job need not run again.
func (r *References) isRemoved(c *Change) bool {
	if c.Path != "" || !isAbsent(c.Got) || len(r.Removed) == 0 {
		return false
	}
	return slices.Contains(r.Removed, c.Object) || slices.Contains(r.Removed, controllerOf(c.Want))
}

// controllerOf returns the key of the object that controls an object by an owner reference, "" if there is none.
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

// notes returns lines about lists in the wrong objects whose items only have another order.
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

// isMissing reports whether the state lacks an object or an item of a list that both references have. The references may differ within it.
func (r *References) isMissing(c *Change) bool {
	return c.isWhole() && isAbsent(c.Got) && !isAbsent(r.Baseline.at(c)) && !isAbsent(r.Late.at(c))
}

// isNear reports whether one of the states in Near has the same value as this state at the changed path.
func (r *References) isNear(c *Change) bool {
	return slices.ContainsFunc(r.Near, func(s State) bool { return reflect.DeepEqual(s.at(c), c.Got) })
}

// rightlyDiffers reports whether the change is a finished Job, or is in a list whose entries all appear in one of the references.
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

// describe returns the values of the changed field as text. A whole object is only described as present or absent. An item of a list is
// described in the same way if one of the values is absent.
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

// at returns the value that the state has at the path of the change, or diff.Absent if there is none.
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

// walk calls visit with a JSON value, and then with each value in it, as long as visit returns true.
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
