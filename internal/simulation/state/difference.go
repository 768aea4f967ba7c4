package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
)

// Change is one place at which two states differ: an object that only one of them has, or a field.
type Change struct {
	Object    string // its kind and name, or External
	Path      string // of the field; "" for the object itself
	Want, Got any    // the values in the two states; diff.Absent if there is none
}

// Compare returns an object that only one of the states has as one change, and each path at which an object differs.
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
	switch {
	case c.Path == "" && isAbsent(c.Got):
		return c.Object + ": is missing"
	case c.Path == "" && isAbsent(c.Want):
		return c.Object + ": should not be there"
	case c.Path == "":
		return fmt.Sprintf("%s: want %s, got %s", c.Object, short(c.Want), short(c.Got))
	}
	return fmt.Sprintf("%s: %s: want %s, got %s", c.Object, c.Path, short(c.Want), short(c.Got))
}

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

// ChangedFields returns a line for each path at which two versions of an object differ.
func ChangedFields(before, after client.Object) []string {
	var lines []string
	for _, d := range differences(contentOf(before), contentOf(after)) {
		lines = append(lines, fmt.Sprintf("%sfrom %s to %s", prefixOf(d.Path), short(d.Before), short(d.After)))
	}
	return lines
}

// maxPaths is the largest number of paths that ChangedPaths returns.
const maxPaths = 3

// ChangedPaths returns the paths at which two versions of an object differ, but only the first three.
func ChangedPaths(before, after client.Object) []string {
	var paths []string
	for _, d := range differences(contentOf(before), contentOf(after)) {
		if paths = append(paths, d.Path.String()); len(paths) == maxPaths {
			break
		}
	}
	return paths
}

func differences(before, after any) []diff.Difference {
	return diff.Values(before, after, diff.Options{Item: itemName, ExpandMaps: true})
}

// contentOf returns an object's JSON value without the fields that every write changes.
func contentOf(obj client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
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

// FindString returns the path of a string in the object that matches, "" if there is none. It skips managed fields, since
// they hold only names of fields.
func FindString(obj runtime.Object, matches func(string) bool) (path string) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return ""
	}
	found, _ := findString(nil, content, matches)
	return found.String()
}

func findString(path diff.Path, v any, matches func(string) bool) (diff.Path, bool) {
	switch v := v.(type) {
	case string:
		return path, matches(v)
	case map[string]any:
		for key, e := range v {
			if key == "managedFields" {
				continue
			}
			if found, ok := findString(path.Field(key), e, matches); ok {
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

// itemName returns how paths name an item of a list: by its type or name, which are the usual keys of lists in Kubernetes, or
// else by its index.
func itemName(i int, v any) string {
	if m, ok := v.(map[string]any); ok {
		for _, key := range []string{"type", "name"} {
			if s, ok := m[key].(string); ok {
				return s
			}
		}
	}
	return fmt.Sprint(i)
}

func short(v any) string {
	if _, absent := v.(diff.Absent); absent {
		return "nothing"
	}
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const enough = 200
	text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(content))
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return text
}
