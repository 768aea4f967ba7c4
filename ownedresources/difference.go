package ownedresources

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// authored gives two objects as trees of what an author may set.
func authored(objs ...client.Object) (before, after map[string]any, err error) {
	var trees [2]map[string]any
	for i, obj := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, nil, err
		}
		metadata, _ := content["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		annotations = maps.Clone(annotations) // those of an unstructured object are its own
		delete(annotations, AnnotationApplied)
		trees[i] = map[string]any{}
		for k, v := range content {
			switch k {
			case "apiVersion", "kind", "status":
			case "metadata":
				trees[i][k] = map[string]any{"labels": metadata["labels"], "annotations": annotations, "ownerReferences": metadata["ownerReferences"]}
			default:
				trees[i][k] = v
			}
		}
	}
	return trees[0], trees[1], nil
}

// differ finds where two trees differ.
type differ struct {
	hidden bool // no value is shown
	found  []Difference
}

func (d *differ) walk(path string, before, after any) {
	if b, ok := before.(map[string]any); ok {
		if a, ok := after.(map[string]any); ok {
			keys := maps.Clone(b)
			maps.Copy(keys, a)
			for _, k := range slices.Sorted(maps.Keys(keys)) {
				d.walk(join(path, k), b[k], a[k])
			}
			return
		}
	}
	if b, ok := before.([]any); ok {
		if a, ok := after.([]any); ok && len(a) == len(b) {
			for i := range b {
				d.walk(fmt.Sprintf("%s[%d]", path, i), b[i], a[i])
			}
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		d.add(path, before, after)
	}
}

// held walks a managed fields entry, and finds what it holds of before that after lacks.
func (d *differ) held(path string, entry *metav1.FieldsV1, before, after any) {
	var fields map[string]any
	if json.Unmarshal(entry.GetRawBytes(), &fields) == nil {
		d.heldFields(path, fields, before, after)
	}
}

func (d *differ) heldFields(path string, fields map[string]any, before, after any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		below, _ := fields[name].(map[string]any)
		kind, value, _ := strings.Cut(name, ":")
		var at string
		var b, a any
		switch kind {
		case "f":
			at = join(path, value)
			b, a = child(before, value), child(after, value)
		case "k":
			at = path + "[" + value + "]"
			b, a = item(before, value), item(after, value)
		default:
			continue
		}
		switch {
		case b == nil:
		case a == nil:
			d.add(at, b, nil)
		case len(below) > 0:
			d.heldFields(at, below, b, a)
		}
	}
}

func child(tree any, name string) any {
	m, _ := tree.(map[string]any)
	return m[name]
}

// item finds a list's item by its keys, as JSON.
func item(tree any, keys string) any {
	var want map[string]any
	list, _ := tree.([]any)
	if json.Unmarshal([]byte(keys), &want) != nil {
		return nil
	}
next:
	for _, candidate := range list {
		for k, v := range want {
			if encoded(child(candidate, k)) != encoded(v) {
				continue next
			}
		}
		return candidate
	}
	return nil
}

func join(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func (d *differ) add(path string, before, after any) {
	show := func(v any) string {
		switch {
		case v == nil:
			return ""
		case d.hidden || holdsEnvironment(path, v):
			return "(hidden)"
		}
		return encoded(v)
	}
	difference := Difference{Path: path, Have: show(before), Want: show(after)}
	if !slices.ContainsFunc(d.found, func(f Difference) bool { return f.Path == path }) {
		d.found = append(d.found, difference)
	}
}

// holdsEnvironment reports whether a value is an environment variable's, or has some in it.
func holdsEnvironment(path string, v any) bool {
	if strings.Contains(path, ".env[") || strings.HasSuffix(path, ".env") {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		_, ok := v["env"]
		for _, e := range v {
			ok = ok || holdsEnvironment("", e)
		}
		return ok
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holdsEnvironment("", e) })
	}
	return false
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "(not JSON)"
	}
	return string(b)
}

// decoded is JSON as a value; there is none for an empty text.
func decoded(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	return v
}
