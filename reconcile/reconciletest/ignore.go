package reconciletest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/internal/record"
)

// IgnoreFields returns a function for [Scenario.Ignore] that removes fields from objects of the kind. The kind is one such
// as "Deployment" or "Deployment.apps", or "*" for all.
//
// A path has the form in which reports print it: status.conditions[Degraded].message. In brackets stands which items of a
// list are meant: all by *, one by its index, by its type or name, or those with a field of a value, as in
// status.history[version=2].time. A bracket after a map is a key of it, or * for all. Keys with dots need no bracket:
// metadata.annotations.example.com/hash.
//
//	Ignore: reconciletest.IgnoreFields("Backup", "status.history[*].duration", "status.nextRun"),
//
// A path that is not there removes nothing. IgnoreFields panics if a path is empty, or has a bracket that is not closed.
func IgnoreFields(kind string, paths ...string) func(obj *unstructured.Unstructured) {
	for _, path := range paths {
		if path == "" || strings.Count(path, "[") != strings.Count(path, "]") {
			panic(fmt.Sprintf("reconciletest.IgnoreFields: path %q: want one such as status.history[*].time", path))
		}
	}
	return func(obj *unstructured.Unstructured) {
		if !isOfKind(obj, kind) {
			return
		}
		for _, path := range paths {
			without(obj.Object, path)
		}
	}
}

// IgnoreKinds returns a function for [Scenario.Ignore] that leaves out all objects of the kinds: it is not compared whether
// they exist. The kinds are such as "Backup" or "Backup.example.com".
func IgnoreKinds(kinds ...string) func(obj *unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		if slices.ContainsFunc(kinds, func(kind string) bool { return isOfKind(obj, kind) }) {
			obj.Object = nil
		}
	}
}

// IgnoreGenerated returns a function for [Scenario.Ignore] for operators that generate random values, such as
// passwords, with ownedresources.Generate or otherwise. For a Secret only the keys of its data are compared, and
// whether each value is empty.
//
// The annotations hold something that is derived from random values, such as a hash by which pods follow a Secret. They
// are removed from objects and from pod templates, and with them the record of what package ownedresources has applied,
// which is a hash too.
func IgnoreGenerated(annotations ...string) func(obj *unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		if isOfKind(obj, "Secret") {
			maskValues(obj)
		}
		for _, metadata := range [][]string{{"metadata"}, {"spec", "template", "metadata"}, {"spec", "jobTemplate", "spec", "template", "metadata"}} {
			for _, annotation := range annotations {
				path := append(slices.Clone(metadata), "annotations", annotation)
				if _, found, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); found {
					unstructured.RemoveNestedField(obj.Object, path...)
					unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", record.Applied)
				}
			}
		}
	}
}

// maskValues replaces the values of a Secret that are not empty.
func maskValues(obj *unstructured.Unstructured) {
	data, _, _ := unstructured.NestedMap(obj.Object, "data")
	for key, value := range data {
		if value != "" {
			data[key] = "ignored"
		}
	}
	if len(data) > 0 {
		obj.Object["data"] = data
	}
}

// IgnoreAll returns a function for [Scenario.Ignore] that calls each of the functions, in their order.
func IgnoreAll(ignore ...func(obj *unstructured.Unstructured)) func(obj *unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		for _, each := range ignore {
			each(obj)
		}
	}
}

// isOfKind reports whether an object is of a kind, which may be followed by its group, or "*".
func isOfKind(obj *unstructured.Unstructured, kind string) bool {
	gvk := obj.GroupVersionKind()
	return kind == "*" || kind == gvk.Kind || kind == gvk.GroupKind().String()
}

// without returns a JSON value without what is at the path in it. It changes maps in place.
func without(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range keysAt(v, path) {
			if key.rest == "" {
				delete(v, key.name)
			} else {
				v[key.name] = without(v[key.name], key.rest)
			}
		}
	case []any:
		selector, rest, found := cutBracket(path)
		if !found {
			return v
		}
		kept := make([]any, 0, len(v))
		for i, item := range v {
			switch {
			case !selects(selector, i, item):
				kept = append(kept, item)
			case rest != "":
				kept = append(kept, without(item, rest))
			}
		}
		return kept
	}
	return v
}

// keyAt is a key of a map with which a path begins, and the rest of the path.
type keyAt struct{ name, rest string }

// keysAt returns the keys of a map with which a path begins. Keys may have dots: the longest one counts.
func keysAt(m map[string]any, path string) (keys []keyAt) {
	if selector, rest, found := cutBracket(path); found {
		for name := range m {
			if selector == "*" || selector == name {
				keys = append(keys, keyAt{name, rest})
			}
		}
		return keys
	}
	longest := ""
	for name := range m {
		after, found := strings.CutPrefix(path, name)
		if found && len(name) > len(longest) && (after == "" || after[0] == '.' || after[0] == '[') {
			longest = name
		}
	}
	if longest == "" {
		return nil
	}
	return []keyAt{{longest, strings.TrimPrefix(path[len(longest):], ".")}}
}

// cutBracket returns what stands in the brackets with which a path begins, and the rest of the path.
func cutBracket(path string) (selector, rest string, found bool) {
	inside, found := strings.CutPrefix(path, "[")
	if !found {
		return "", path, false
	}
	selector, rest, found = strings.Cut(inside, "]")
	return selector, strings.TrimPrefix(rest, "."), found
}

// selects reports whether a selector is for an item of a list.
func selects(selector string, i int, item any) bool {
	if selector == "*" || selector == strconv.Itoa(i) {
		return true
	}
	fields, ok := item.(map[string]any)
	if !ok {
		return fmt.Sprint(item) == selector
	}
	if key, value, found := strings.Cut(selector, "="); found {
		return fmt.Sprint(fields[key]) == value
	}
	return fields["type"] == selector || fields["name"] == selector
}
