package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
)

// Change is one difference between two states: an object that only one of them has, or a field.
type Change struct {
	Object    string // the object's kind and name, or External
	Path      string // the path of the field; "" for the object itself
	Want, Got any    // the values in the two states; diff.Absent if there is none
}

// Compare returns the changes between two states. An object that only one of the states has is one change. An object that both have is one
// change for each path at which it differs.
func Compare(want, got State) []Change {
	names := maps.Clone(want)
	maps.Copy(names, got)
	var all []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w, wanted := want[name]
		g, found := got[name]
		switch {
		case !found:
			all = append(all, Change{Object: name, Want: w, Got: diff.Absent{}})
		case !wanted:
			all = append(all, Change{Object: name, Want: diff.Absent{}, Got: g})
		default:
			for _, d := range differences(w, g) {
				all = append(all, Change{name, d.Path.String(), d.Before, d.After})
			}
		}
	}
	return all
}

// String returns the change as failures print it.
func (c *Change) String() string {
	values := c.describe(c.Want, c.Got)
	return fmt.Sprintf("%s: %s without faults, %s here", c.place(), values[0], values[1])
}

// place returns the object and the path of the change as text.
func (c *Change) place() string {
	if c.Path == "" {
		return c.Object
	}
	return c.Object + ": " + c.Path
}

// isWhole reports whether the change is about a whole object, or about a whole item of a list.
func (c *Change) isWhole() bool { return c.Path == "" || c.isItem() }

// isItem reports whether the change is about a whole item of a list.
func (c *Change) isItem() bool { return strings.HasSuffix(c.Path, "]") }

func isAbsent(v any) bool {
	_, absent := v.(diff.Absent)
	return absent
}

// Difference returns the changes of [Compare] as text, a line each.
func Difference(want, got State) []string {
	var lines []string
	for _, c := range Compare(want, got) {
		lines = append(lines, c.String())
	}
	return lines
}

// AddedOutside returns a line for each path outside of the cluster whose value differs between the beginning and the end. It leaves out
// values that are empty or shorter at the end.
func AddedOutside(begun, ended State) []string {
	var lines []string
	for _, c := range Compare(State{External: begun[External]}, State{External: ended[External]}) {
		if isEmpty(c.Got) || c.direction() == "is shorter here" {
			continue
		}
		values := c.describe(c.Want, c.Got)
		lines = append(lines, fmt.Sprintf("%s: %s at the beginning, %s in the end", c.place(), values[0], values[1]))
	}
	return lines
}

// AddedEntries returns the paths at which an object has more at the end than at the beginning: a new field that is not empty, or a list
// with more items.
func AddedEntries(object string, begun, ended State) []string {
	var lines []string
	for _, c := range Compare(State{object: begun[object]}, State{object: ended[object]}) {
		if isAbsent(c.Want) && !isEmpty(c.Got) || c.direction() == "is longer here" {
			lines = append(lines, c.place())
		}
	}
	return lines
}

// maxFields is the largest number of fields that ChangedFields returns.
const maxFields = 6

// ChangedFields returns a line for each path at which two versions of an object differ, but only for the first six. If the two values show
// why they differ in each pass, further lines say so.
func ChangedFields(before, after client.Object) []string {
	was, is := lasting(before), lasting(after)
	var lines []string
	all := differences(was, is)
	for i, d := range all {
		if i == maxFields {
			lines = append(lines, fmt.Sprintf("and %d more", len(all)-maxFields))
			break
		}
		values := short(d.Before, d.After)
		lines = append(lines, fmt.Sprintf("%sfrom %s to %s", prefixOf(d.Path), values[0], values[1]))
	}
	return append(lines, instabilities(was, is)...)
}

// maxPaths is the largest number of paths that ChangedPaths returns.
const maxPaths = 3

// ChangedPaths returns the paths at which two versions of an object differ, at most the first three.
func ChangedPaths(before, after client.Object) []string {
	var paths []string
	for _, d := range differences(lasting(before), lasting(after)) {
		if paths = append(paths, d.Path.String()); len(paths) == maxPaths {
			break
		}
	}
	return paths
}

func differences(before, after any) []diff.Difference {
	return diff.Values(before, after, diff.Options{Item: itemName, Key: itemKey, ExpandMaps: true})
}

// lasting returns an object's JSON value without the fields that every write changes.
func lasting(obj client.Object) map[string]any {
	content, err := contentOf(obj)
	if err != nil {
		return nil
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range []string{"resourceVersion", "generation", "managedFields", "deletionGracePeriodSeconds"} {
			delete(metadata, field)
		}
	}
	return content
}

// EqualWithout reports whether two versions of an object are equal. It ignores the fields that every write changes, and what remove
// removes.
func EqualWithout(before, after client.Object, remove func(*unstructured.Unstructured)) bool {
	was, is := &unstructured.Unstructured{Object: lasting(before)}, &unstructured.Unstructured{Object: lasting(after)}
	remove(was)
	remove(is)
	return reflect.DeepEqual(nonempty(was.Object), nonempty(is.Object))
}

// FindString returns the path of a string in the object that matches, "" if there is none. It skips managed fields, since
// they hold only names of fields.
func FindString(obj runtime.Object, matches func(string) bool) (path string) {
	content, err := contentOf(obj)
	if err != nil || !hasString(content, matches) {
		return ""
	}
	found, _ := findString(nil, content, matches)
	return found.String()
}

// hasString does the same as FindString without the path, and is much faster.
func hasString(v any, matches func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return matches(v)
	case map[string]any:
		for key, e := range v {
			if key != "managedFields" && hasString(e, matches) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return hasString(e, matches) })
	}
	return false
}

func findString(path diff.Path, v any, matches func(string) bool) (diff.Path, bool) {
	switch v := v.(type) {
	case string:
		return path, matches(v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "managedFields" {
				continue
			}
			if found, ok := findString(path.Field(key), v[key], matches); ok {
				return found, true
			}
		}
	case []any:
		for i, e := range v {
			if found, ok := findString(path.Item(itemName(i, e)), e, matches); ok {
				return found, true
			}
		}
	}
	return nil, false
}

func prefixOf(path diff.Path) string {
	if len(path) == 0 {
		return ""
	}
	return path.String() + ": "
}

// itemName returns the name of an item of a list in a path: its type or name if it has one, or else its index.
func itemName(i int, v any) string {
	if key, found := itemKey(v); found {
		return key
	}
	return fmt.Sprint(i)
}

// itemKey returns the type or name of an item of a list, which are the usual keys of lists in Kubernetes.
func itemKey(v any) (key string, found bool) {
	if m, ok := v.(map[string]any); ok {
		for _, field := range []string{"type", "name"} {
			if s, ok := m[field].(string); ok {
				return s, true
			}
		}
	}
	return "", false
}

// Lengths of values in messages, in bytes.
const (
	maxValue  = 200 // longer values are cut off
	sameValue = 40  // how many bytes a value that is cut off shows before the first difference
)

// short returns values as text, so that they can be compared. If one is too long, all begin shortly before the first difference, and are
// cut off at the end.
func short(values ...any) []string {
	texts := make([]string, len(values))
	tooLong := false
	for i, v := range values {
		texts[i] = encoded(v)
		tooLong = tooLong || len(texts[i]) > maxValue
	}
	if !tooLong {
		return texts
	}
	skip := max(0, commonPrefix(values, texts)-sameValue)
	for i, text := range texts {
		if isAbsent(values[i]) {
			continue
		}
		if skip > 0 {
			text = "…" + strings.ToValidUTF8(text[skip:], "")
		}
		if len(text) > maxValue {
			text = strings.ToValidUTF8(text[:maxValue], "") + "…"
		}
		texts[i] = text
	}
	return texts
}

// commonPrefix returns how many bytes at the beginning all texts have in common. It ignores the texts of absent values. It returns 0 if
// there is only one text, or if all texts are equal.
func commonPrefix(values []any, texts []string) int {
	n, first := -1, ""
	for i, text := range texts {
		switch {
		case isAbsent(values[i]):
		case n < 0:
			n, first = len(text), text
		default:
			n = min(n, len(text))
			for j := range n {
				if text[j] != first[j] {
					n = j
					break
				}
			}
		}
	}
	if n == len(first) {
		return 0 // there is one value, or the values are equal
	}
	return n
}

// encoded returns a value as JSON, and "nothing" if it is absent.
func encoded(v any) string {
	if isAbsent(v) {
		return "nothing"
	}
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(content))
}
