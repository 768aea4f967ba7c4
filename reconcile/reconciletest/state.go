package reconciletest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// state is all that is there: objects by kind and name, and what is outside. What differs between
// two runs that came to the same is replaced: UIDs, versions, times, and names that the API server gave.
type state map[string]any

// transient kinds tell what happened, and not what is.
var transient = map[string]bool{"Event": true, "Lease": true}

// snapshot gives the state of a run.
func (r *run) snapshot() (state, error) {
	r.mu.Lock()
	objects := slices.Collect(maps.Values(r.present))
	r.mu.Unlock()
	var all []*unstructured.Unstructured
	uids := make([]string, 0, 2*len(objects))
	for _, obj := range objects {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		if transient[kind] {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: content}
		uids = append(uids, string(u.GetUID()), "<uid of "+kind+" "+u.GetName()+">")
		if r.scenario.Ignore != nil {
			r.scenario.Ignore(u)
		}
		all = append(all, u)
	}
	var outside any
	if r.outside != nil {
		if err := json.Unmarshal([]byte(stateOf(r.outside)), &outside); err != nil {
			return nil, fmt.Errorf("state outside: %w", err)
		}
		outside = nonempty(outside)
	}
	ids := strings.NewReplacer(uids...)
	for _, u := range all {
		simplify(u)
		u.Object = replaced(u.Object, ids.Replace).(map[string]any)
	}
	names := strings.NewReplacer(givenNames(all)...)
	s := state{}
	for _, u := range all {
		content := replaced(u.Object, names.Replace).(map[string]any)
		key := u.GetKind() + " " + nameOf(client.ObjectKey{Namespace: u.GetNamespace(), Name: names.Replace(u.GetName())})
		s[key] = content
	}
	if r.outside != nil {
		s["outside"] = replaced(replaced(outside, ids.Replace), names.Replace)
	}
	return s, nil
}

// appliedAnnotation is where package ownedresources notes what it last sent, and whether that was the creation.
const appliedAnnotation = "opblocks.dev/applied"

// simplify removes what says nothing about the state.
func simplify(u *unstructured.Unstructured) {
	metadata, _, _ := unstructured.NestedMap(u.Object, "metadata")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionGracePeriodSeconds"} {
		delete(metadata, field)
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		if mark, ok := annotations[appliedAnnotation].(string); ok { // how often it was written does not matter
			annotations[appliedAnnotation] = strings.Replace(mark, ":created:", ":applied:", 1)
		}
		if delete(annotations, anotherAnnotation); len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	if labels, ok := metadata["labels"].(map[string]any); ok {
		delete(labels, templateLabel)
		if delete(labels, anotherAnnotation); len(labels) == 0 {
			delete(metadata, "labels")
		}
	}
	if finalizers, ok := metadata["finalizers"].([]any); ok {
		left := slices.DeleteFunc(finalizers, func(f any) bool { return f == anotherFinalizer })
		if metadata["finalizers"] = left; len(left) == 0 {
			delete(metadata, "finalizers")
		}
	}
	if conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions"); len(conditions) > 0 {
		left := slices.DeleteFunc(conditions, func(c any) bool {
			condition, ok := c.(map[string]any)
			return ok && condition["type"] == anotherCondition
		})
		if types := typesOf(left); len(types) == len(left) { // a map by type: its order says nothing
			slices.SortFunc(left, func(a, b any) int {
				return cmp.Compare(a.(map[string]any)["type"].(string), b.(map[string]any)["type"].(string))
			})
		}
		if unstructured.RemoveNestedField(u.Object, "status", "conditions"); len(left) > 0 {
			_ = unstructured.SetNestedSlice(u.Object, left, "status", "conditions") // the status is there
		}
	}
	generation := u.GetGeneration()
	u.Object["metadata"] = metadata
	namedGenerations(u.Object, generation)
}

// typesOf gives the types of conditions.
func typesOf(conditions []any) map[string]bool {
	types := map[string]bool{}
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			if of, ok := condition["type"].(string); ok {
				types[of] = true
			}
		}
	}
	return types
}

// namedGenerations says of each observed generation whether it is the object's: how often a spec was
// written does not matter.
func namedGenerations(v any, generation int64) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if n, ok := e.(int64); ok && key == "observedGeneration" {
				v[key] = "that of the object"
				if n != generation {
					v[key] = "not that of the object"
				}
				continue
			}
			namedGenerations(e, generation)
		}
	case []any:
		for _, e := range v {
			namedGenerations(e, generation)
		}
	}
}

var timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// replaced copies a tree of JSON with its strings changed, and times taken out of them.
func replaced(v any, change func(string) string) any {
	switch v := v.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, e := range v {
			made[key] = replaced(e, change)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, e := range v {
			made[i] = replaced(e, change)
		}
		return made
	case string:
		if strings.Contains(v, "T") && timePattern.MatchString(v) {
			v = timePattern.ReplaceAllString(v, "<time>")
		}
		return change(v)
	}
	return v
}

// givenNames pairs the names that the API server made up with ones that do not depend on the order in which
// that happened: numbered, in the order of their objects' contents.
func givenNames(all []*unstructured.Unstructured) []string {
	type given struct{ prefix, name, content string }
	var names []given
	for _, u := range all {
		prefix, name := u.GetGenerateName(), u.GetName()
		if prefix == "" || !strings.HasPrefix(name, prefix) || name == prefix {
			continue
		}
		content, _ := json.Marshal(u.Object) // it came from JSON
		names = append(names, given{u.GetKind() + " " + u.GetNamespace() + "/" + prefix, name, strings.ReplaceAll(string(content), name, "")})
	}
	slices.SortFunc(names, func(a, b given) int {
		return cmp.Or(strings.Compare(a.prefix, b.prefix), strings.Compare(a.content, b.content), strings.Compare(a.name, b.name))
	})
	var pairs []string
	n := 0
	for i, g := range names {
		if n++; i == 0 || names[i-1].prefix != g.prefix {
			n = 1
		}
		_, prefix, _ := strings.Cut(g.prefix, "/")
		pairs = append(pairs, g.name, fmt.Sprintf("%s<%d>", prefix, n))
	}
	return pairs
}

// nonempty makes an empty list or map nothing at all, since Go's nil ones become null.
func nonempty(v any) any {
	switch e := v.(type) {
	case map[string]any:
		for key := range e {
			if e[key] = nonempty(e[key]); e[key] == nil {
				delete(e, key)
			}
		}
		if len(e) == 0 {
			return nil
		}
	case []any:
		for i := range e {
			e[i] = nonempty(e[i])
		}
		if len(e) == 0 {
			return nil
		}
	}
	return v
}

// stateOf gives what is outside as JSON.
func stateOf(o External) string {
	if o == nil {
		return ""
	}
	content, err := json.Marshal(o.State())
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return string(content)
}
