package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// State is what exists when the operator is quiet: the objects by kind and name, and under [External] the state outside of
// the cluster. Everything that differs between two runs with the same result is removed or replaced: UIDs, resource
// versions, times, and names that the API server generated.
type State map[string]any

// External is the key of the state outside of the cluster.
const External = "external"

// These are what the simulation's other writer adds to objects. The function [Of] leaves it out.
const (
	OtherWriterKey       = "reconciletest.opblocks.dev/another-writer" // an annotation, a label and a finalizer
	OtherWriterCondition = "reconciletest.opblocks.dev/AnotherWriter"
	OtherControllerKey   = "reconciletest.opblocks.dev/another-controller" // a finalizer
)

// transient are kinds of objects that record events, or who is the leader. They are not compared.
var transient = map[string]bool{"Event": true, "Lease": true}

// IsTransient reports whether objects of the kind are not compared, such as Events.
func IsTransient(kind string) bool { return transient[kind] }

// Of returns the state of the objects and of external. external is the state outside of the cluster as [EncodeExternal] returns it, or "".
// known has the identities of all objects of the run, including deleted objects. ignore is called with a copy of each object, without its
// managed fields. It may change the object, or empty it to leave it out. ignore may be nil.
func Of(objects []client.Object, known *Identities, external string, ignore func(*unstructured.Unstructured)) (State, error) {
	var all []*unstructured.Unstructured
	uids, exist := make([]string, 0, 2*len(objects)), make(map[string]bool, 2*len(objects))
	for _, obj := range objects {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		if transient[kind] || isRevision(obj) {
			continue
		}
		content, err := contentOf(obj)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: content}
		uids = append(uids, string(u.GetUID()), "<uid of "+kind+" "+u.GetName()+">")
		exist[string(u.GetUID())], exist[u.GetName()] = true, true
		if ignore != nil {
			ignore(u)
		}
		if len(u.Object) == 0 { // ignore has emptied it
			continue
		}
		all = append(all, u)
	}
	var outside any
	if external != "" {
		if err := json.Unmarshal([]byte(external), &outside); err != nil {
			return nil, fmt.Errorf("the external state: %w", err)
		}
		outside = nonempty(outside)
	}
	ids := strings.NewReplacer(slices.Concat(uids, pairs(known.uids, exist), known.outside)...)
	for _, u := range all {
		simplify(u)
		decodeBytes(u)
		known.markStaleOwners(u, exist)
		known.replaceVersions(u.Object)
		u.Object = replaced(u.Object, ids.Replace).(map[string]any)
	}
	names := strings.NewReplacer(append(generatedNames(all), pairs(known.names, exist)...)...)
	simple := func(text string) string { return withoutTimes(names.Replace(text)) }
	s := State{}
	for _, u := range all {
		content := replaced(u.Object, simple).(map[string]any)
		encodeBytes(content)
		key := u.GetKind() + " " + NameOf(client.ObjectKey{Namespace: u.GetNamespace(), Name: names.Replace(u.GetName())}) // UIDs in the name are replaced already
		s[key] = content
	}
	if external != "" {
		s[External] = replaced(replaced(outside, ids.Replace), simple)
	}
	return s, nil
}

// EncodeExternal returns the state outside of the cluster as JSON. For a value that cannot be encoded it returns the text of
// the error.
func EncodeExternal(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return string(content)
}

// NameOf returns the namespace and name of an object, or its name if it has no namespace.
func NameOf(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// versions are the annotations whose values contain resource versions.
var versions = record.OnChildren(record.AsAnnotation, func(k record.ChildKey) bool { return k.Versions })

// simplify removes the fields that are not compared, and replaces observed generations.
func simplify(u *unstructured.Unstructured) {
	metadata, _, _ := unstructured.NestedMap(u.Object, "metadata")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionGracePeriodSeconds"} {
		delete(metadata, field)
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		if applied, ok := annotations[record.Applied].(string); ok { // makes no difference between written once and written again
			annotations[record.Applied] = strings.Replace(applied, ":created:", ":applied:", 1)
		}
		for _, key := range versions {
			delete(annotations, key)
		}
		if delete(annotations, OtherWriterKey); len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	if labels, ok := metadata["labels"].(map[string]any); ok {
		delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
		delete(labels, appsv1.ControllerRevisionHashLabelKey)
		if delete(labels, OtherWriterKey); len(labels) == 0 {
			delete(metadata, "labels")
		}
	}
	if finalizers, ok := metadata["finalizers"].([]any); ok {
		left := slices.DeleteFunc(finalizers, func(f any) bool { return f == OtherWriterKey || f == OtherControllerKey })
		if metadata["finalizers"] = left; len(left) == 0 {
			delete(metadata, "finalizers")
		}
	}
	simplifyConditions(u)
	simplifyBuiltIn(u)
	generation := u.GetGeneration()
	u.Object["metadata"] = metadata
	replaceGenerations(u.Object, generation)
}

// simplifyConditions removes the other writer's condition. If each type occurs only once, it sorts the conditions by type, since their
// order has no meaning.
func simplifyConditions(u *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if len(conditions) == 0 {
		return
	}
	left := slices.DeleteFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == OtherWriterCondition
	})
	if types := typesOf(left); len(types) == len(left) {
		slices.SortFunc(left, func(a, b any) int {
			return cmp.Compare(a.(map[string]any)["type"].(string), b.(map[string]any)["type"].(string))
		})
	}
	if unstructured.RemoveNestedField(u.Object, "status", "conditions"); len(left) > 0 {
		_ = unstructured.SetNestedSlice(u.Object, left, "status", "conditions") // cannot fail: the status exists
	}
}

// typesOf returns the set of the types of conditions.
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

// replaceGenerations replaces each observedGeneration by whether it equals the object's generation. How often a spec was written makes no
// difference. Whether its last change was observed makes one.
func replaceGenerations(v any, generation int64) {
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
			replaceGenerations(e, generation)
		}
	case []any:
		for _, e := range v {
			replaceGenerations(e, generation)
		}
	}
}

var timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// replaced returns a copy of a JSON value. In its strings, times are replaced first, and then change is applied.
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
	case int64:
		if isTimeNumber(v) {
			return "<time>"
		}
	case float64:
		if isTimeNumber(int64(v)) {
			return "<time>"
		}
	}
	return v
}

// generatedNames returns pairs for strings.NewReplacer: each name that the API server generated or that contains a time, and its
// replacement. Replacements are numbered in the order of the objects' contents, so they do not depend on the order of creation.
func generatedNames(all []*unstructured.Unstructured) []string {
	type generated struct{ prefix, name, content string }
	var names []generated
	for _, u := range all {
		prefix, name := u.GetGenerateName(), u.GetName()
		if !isGenerated(prefix, name) {
			if prefix = withoutTimes(name); prefix == name {
				continue
			}
		}
		prefix = withoutTimes(prefix)
		content, _ := json.Marshal(u.Object) // cannot fail: it was made from JSON
		names = append(names, generated{u.GetKind() + " " + u.GetNamespace() + "/" + prefix, name, strings.ReplaceAll(string(content), name, "")})
	}
	slices.SortFunc(names, func(a, b generated) int {
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
	return longestFirst(pairs)
}

// nonempty returns a JSON value without empty lists and maps. Go encodes a nil list or map as null, and an empty one as [] or {}. These
// mean the same.
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

// StatusOf returns an object's status as a JSON value, nil if it has none.
func StatusOf(obj client.Object) any { return fieldOf(obj, "status") }

// SpecOf returns an object's spec as a JSON value, nil if it has none.
func SpecOf(obj client.Object) any { return fieldOf(obj, "spec") }

func fieldOf(obj client.Object, name string) any {
	content, err := contentOf(obj)
	if err != nil {
		return nil
	}
	return content[name]
}

// HasStatus reports whether an object's status has a field that is not empty.
func HasStatus(obj client.Object) bool { return nonempty(StatusOf(obj)) != nil }

// longestFirst sorts pairs for strings.NewReplacer, so that a name is not replaced within a longer name that begins with it.
func longestFirst(pairs []string) []string {
	all := slices.Collect(slices.Chunk(pairs, 2))
	slices.SortStableFunc(all, func(a, b []string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	return slices.Concat(all...)
}
