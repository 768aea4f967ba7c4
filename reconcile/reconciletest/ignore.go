package reconciletest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/internal/record"
)

// Ignore says what may rightly differ between two runs. UIDs, resource versions, times and generated names are never compared.
//
// In its fields a kind is written as "Deployment" or "Deployment.apps". "*" means all kinds.
type Ignore struct {
	// Fields are the paths of fields that are not compared, by the kinds of their objects:
	//
	//	Fields: map[string][]string{"Backup": {"status.history[*].duration", "status.nextRun"}},
	//
	// A path has the form in which reports print it: status.conditions[Degraded].message. After a list, brackets say which items are meant:
	// status.conditions[*] means all items, status.conditions[2] the item with this index, status.conditions[Degraded] the item with this
	// type or name, and status.history[version=2] the items whose field version is 2. After a map, brackets have a key of it, or * for all
	// keys. Keys with dots need no brackets: metadata.annotations.example.com/hash. If an object does not have a path, nothing is removed.
	Fields map[string][]string

	// Kinds are kinds whose objects are left out: it is not compared whether they exist.
	Kinds []string

	// SecretValues is for operators that generate random values, such as passwords, with ownedresources.Generate or otherwise. For a
	// Secret only the keys of its data are compared, and whether each value is empty.
	SecretValues bool

	// Derived are annotations that hold something derived from random values, such as a hash by which pods follow a Secret. They
	// are removed from objects and from pod templates, and with them the record of what package ownedresources has applied,
	// which is a hash too.
	Derived []string

	// Func removes what the fields above cannot name. It is called first, with a copy of each object. If it sets Object to nil, the object
	// is left out: it is not compared whether the object exists.
	Func func(obj *unstructured.Unstructured)
}

// validate returns an error if a path cannot be read.
func (i *Ignore) validate() error { return validatePaths("Ignore.Fields", i.Fields) }

// validatePaths returns an error if a path is empty, or has a bracket that is not closed. field is the name of the scenario's field with
// the paths.
func validatePaths(field string, paths map[string][]string) error {
	for _, kind := range slices.Sorted(maps.Keys(paths)) {
		for _, path := range paths[kind] {
			if path == "" || strings.Count(path, "[") != strings.Count(path, "]") {
				return fmt.Errorf("the scenario's %s[%q] has the path %q: give it one such as status.history[*].time", field, kind, path)
			}
		}
	}
	return nil
}

// apply removes from an object what is ignored.
func (i *Ignore) apply(obj *unstructured.Unstructured) {
	if i.Func != nil {
		i.Func(obj)
	}
	removeFields(obj, i.Fields)
	if i.SecretValues && isOfKind(obj, "Secret") {
		maskValues(obj)
	}
	removeDerived(obj, i.Derived)
	if slices.ContainsFunc(i.Kinds, func(kind string) bool { return isOfKind(obj, kind) }) {
		obj.Object = nil
	}
}

// removeFields removes the fields of an object that are named by the object's kind.
func removeFields(obj *unstructured.Unstructured, paths map[string][]string) {
	for kind, all := range paths {
		if !isOfKind(obj, kind) {
			continue
		}
		for _, path := range all {
			without(obj.Object, path)
		}
	}
}

// removeDerived removes the annotations from an object. If the object has one of them, it also removes the record of
// what was applied.
func removeDerived(obj *unstructured.Unstructured, annotations []string) {
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

// isOfKind reports whether an object is of a kind, such as "Deployment" or "Deployment.apps". It returns true for the kind "*".
func isOfKind(obj *unstructured.Unstructured, kind string) bool {
	gvk := obj.GroupVersionKind()
	return kind == "*" || kind == gvk.Kind || kind == gvk.GroupKind().String()
}

// without removes the value at the path from a JSON value, and returns the rest. It changes maps in place.
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

// keysAt returns the keys of the map with which the path begins. Keys may have dots. If several keys fit, the longest one is returned.
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

// cutBracket returns the text in the brackets at the beginning of a path, and the rest of the path.
func cutBracket(path string) (selector, rest string, found bool) {
	inside, found := strings.CutPrefix(path, "[")
	if !found {
		return "", path, false
	}
	selector, rest, found = strings.Cut(inside, "]")
	return selector, strings.TrimPrefix(rest, "."), found
}

// selects reports whether the text in the brackets of a path selects an item of a list.
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
