package overlay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Protect protects fields of the pod template. A patch that changes, adds or removes one of them is an error. Compared are
// the values before and after the merge, so a patch that repeats the value of the base is accepted.
//
// A path is written as in the API server's errors, with the name of a map's entry, or the key of a list's item, in brackets:
//
//	spec.serviceAccountName
//	spec.containers[web].image
//	spec.containers[web].name           — the container must stay, and its other fields may change
//	spec.containers[web]                — nothing of the container may change
//	spec.containers[web].env[PORT]
//	metadata.annotations[example.com/config-hash]
//
// The key is what identifies an item in a strategic merge patch: the name of containers, volumes and variables, the
// containerPort of ports, the mountPath of mounts. Lists that are replaced as a whole, such as spec.tolerations, have no
// keys, and can only be protected as a whole. A path that no pod template can have is an error in each call of Apply, also
// without a patch.
func Protect(paths ...string) Option {
	parsed := make([]protectedPath, 0, len(paths))
	for _, text := range paths {
		path, err := parsePath(text)
		if err != nil {
			return func(s *settings) { s.err = err }
		}
		parsed = append(parsed, path)
	}
	return func(s *settings) { s.protected = append(s.protected, parsed...) }
}

// checkResult checks the merged pod template. Comparing it with the base finds every way in which a patch can change what
// is protected.
func checkResult(root *field.Path, base, merged *corev1.PodTemplateSpec, selector *metav1.LabelSelector, protected []protectedPath) field.ErrorList {
	c := &checker{}
	if len(base.Spec.Containers) > 0 && len(merged.Spec.Containers) == 0 {
		c.add(field.Required(root.Child("spec", "containers"), "the patch removes all containers of the pod: keep one"))
	}
	labels := root.Child("metadata", "labels")
	for _, key := range keysOf(selector) {
		was, wasSet := base.Labels[key]
		is, isSet := merged.Labels[key]
		switch {
		case was == is && wasSet == isSet:
		case wasSet:
			c.add(field.Forbidden(labels.Key(key), fmt.Sprintf("must stay %q, by which the workload selects its pods: do not change or remove it", was)))
		default:
			c.add(field.Forbidden(labels.Key(key), "must stay unset, since the workload selects its pods by it: remove it from the patch"))
		}
	}
	for _, p := range protected {
		if p.changed(base, merged) {
			c.add(field.Forbidden(root.Child(p.text), "cannot be changed, because the operator needs it: remove from the patch what changes, replaces or deletes it"))
		}
	}
	return c.errors
}

// keysOf returns the labels that a selector names, sorted.
func keysOf(selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	keys := slices.Collect(maps.Keys(selector.MatchLabels))
	for _, e := range selector.MatchExpressions {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

type protectedPath struct {
	text  string
	steps []step
}

// step leads from a value to one below it: to a field, to an entry of a map, or to the items of a list that have a key.
type step struct {
	field    []int
	key      string
	keyField []int // of an item
}

func parsePath(text string) (protectedPath, error) {
	path, t := protectedPath{text: text}, podTemplateType
	fail := func(reason string) (protectedPath, error) {
		return protectedPath{}, fmt.Errorf("the path %q of overlay.Protect does not exist in a pod template: %s", text, reason)
	}
	for rest, more := text, true; more; {
		end := strings.IndexAny(rest+".", ".[")
		name := rest[:end]
		if t.Kind() != reflect.Struct || isScalar(t) {
			return fail(fmt.Sprintf("%q has no fields; write an entry of a map or an item of a list as [%s]", strings.TrimSuffix(text[:len(text)-len(rest)], "."), name))
		}
		m, found := memberOf(t, name)
		if !found {
			return fail(fmt.Sprintf("there is no field %q", name))
		}
		path.steps, t, rest = append(path.steps, step{field: m.index}), m.goType, rest[end:]
		if inBrackets, isKey := strings.CutPrefix(rest, "["); isKey {
			key, after, closed := strings.Cut(inBrackets, "]")
			switch {
			case !closed:
				return fail("a bracket is not closed")
			case t.Kind() == reflect.Map:
				path.steps, t = append(path.steps, step{key: key}), withoutPointer(t.Elem())
			case t.Kind() == reflect.Slice && m.mergeKey != "":
				path.steps, t = append(path.steps, step{key: key, keyField: fieldsOf(t.Elem())[m.mergeKey].index}), t.Elem()
			default:
				return fail(fmt.Sprintf("%q has no keys; protect it as a whole", name))
			}
			rest = after
		}
		if rest, more = strings.CutPrefix(rest, "."); !more && rest != "" {
			return fail(fmt.Sprintf("a dot is missing before %q", rest))
		}
	}
	return path, nil
}

// changed reports whether the values at the path differ.
func (p protectedPath) changed(base, merged *corev1.PodTemplateSpec) bool {
	return !equality.Semantic.DeepEqual(valuesAt(reflect.ValueOf(base), p.steps), valuesAt(reflect.ValueOf(merged), p.steps))
}

// valuesAt returns the values to which the steps lead: none if a pointer on the way is nil or a key is missing, and several
// if items have the same key.
func valuesAt(v reflect.Value, steps []step) (values []any) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if len(steps) == 0 {
		return []any{v.Interface()}
	}
	switch s, below := steps[0], steps[1:]; {
	case s.field != nil:
		return valuesAt(v.FieldByIndex(s.field), below)
	case s.keyField == nil:
		if entry := v.MapIndex(reflect.ValueOf(s.key).Convert(v.Type().Key())); entry.IsValid() {
			return valuesAt(entry, below)
		}
	default:
		for i := range v.Len() {
			if item := v.Index(i); fmt.Sprint(item.FieldByIndex(s.keyField)) == s.key {
				values = append(values, valuesAt(item, below)...)
			}
		}
	}
	return values
}
