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

// Protect protects fields of the pod template. A patch that changes, adds or removes one of them is an error. The values before and after
// the merge are compared, so a patch that repeats the value of the base is accepted.
//
// A path is written as in the API server's errors, with the name of a map's entry, or the key of a list's item, in brackets:
//
//	spec.serviceAccountName
//	spec.containers[web].image
//	spec.containers[web].name           — the container must stay, and its other fields may change
//	spec.containers[web]                — nothing of the container may change
//	spec.containers[web].env[PORT]
//	metadata.annotations[example.com/config-hash]
//	spec.containers[*].image            — in all containers: none can be added or removed, since each has an image
//	spec.volumes[*].hostPath            — no hostPath volume can be added
//
// The key is what identifies an item in a strategic merge patch: the name of containers, volumes and variables, the
// containerPort of ports, the mountPath of mounts. Lists that are replaced as a whole, such as spec.tolerations, have no
// keys, and can only be protected as a whole. An asterisk at the end of a key stands for any text. A path that no pod
// template can have is an error in each call of Apply, also without a patch.
//
// Some fields can be set in two ways. An example is spec.serviceAccountName, which the older spec.serviceAccount sets too. Another one is
// an AppArmor profile, which an annotation of the pod sets too. Protecting one of the two, or an object that contains it, protects the
// other. A field that overrides a protected field has to be protected as well: the security context of a container overrides the security
// context of the pod, and another mount can cover a protected mount.
func Protect(paths ...string) Option {
	parsed := make([]protectedPath, 0, len(paths))
	for _, text := range paths {
		path, err := parsePath(text)
		if err != nil {
			return func(s *settings) { s.err = err }
		}
		parsed = append(parsed, withAliases(path)...)
	}
	return func(s *settings) { s.protected = append(s.protected, parsed...) }
}

// checkResult checks the merged pod template against the base. Comparing the two finds every change of a protected field,
// however the patch makes it.
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
		at := root.Child(p.text)
		known := slices.ContainsFunc(c.errors, func(err *field.Error) bool { return err.Field == at.String() })
		if known || !p.changed(base, merged) {
			continue
		}
		needed := "the operator needs it"
		if p.sameAs != "" {
			needed = "it means the same as " + p.sameAs + ", which the operator needs"
		}
		c.add(field.Forbidden(at, "cannot be changed, because "+needed+": remove from the patch what changes, replaces or deletes it"))
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
	text   string
	steps  []step
	sameAs string // the protected field, if this path is an alias of it
}

// step is one step of a path: to a field, to the entries of a map, or to the items of a list.
type step struct {
	field    []int
	key      keyPattern
	keyField []int // the index of the field that is an item's key
}

// keyPattern matches the key of an entry or an item. If open is true, it matches all keys that begin with text.
type keyPattern struct {
	text string
	open bool
}

func parseKey(text string) keyPattern {
	prefix, open := strings.CutSuffix(text, "*")
	return keyPattern{text: prefix, open: open}
}

func (k keyPattern) String() string {
	if k.open {
		return k.text + "*"
	}
	return k.text
}

func (k keyPattern) matches(key string) bool {
	return key == k.text || k.open && strings.HasPrefix(key, k.text)
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
				path.steps, t = append(path.steps, step{key: parseKey(key)}), withoutPointer(t.Elem())
			case t.Kind() == reflect.Slice && m.mergeKey != "":
				path.steps, t = append(path.steps, step{key: parseKey(key), keyField: fieldsOf(t.Elem())[m.mergeKey].index}), t.Elem()
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

// changed reports whether the values at the path differ between base and merged.
func (p protectedPath) changed(base, merged *corev1.PodTemplateSpec) bool {
	return !equality.Semantic.DeepEqual(valuesAt(reflect.ValueOf(base), p.steps, ""), valuesAt(reflect.ValueOf(merged), p.steps, ""))
}

// keyed is a value, and the keys on the path to it.
type keyed struct {
	Keys  string
	Value any
}

// valuesAt returns the values to which the path leads, sorted by their keys. It returns none if a field on the path is
// unset or a key is missing, and several if items have the same key or if a key is open.
func valuesAt(v reflect.Value, steps []step, keys string) (values []keyed) {
	v = reflect.Indirect(v)
	if len(steps) == 0 {
		return []keyed{{keys, v.Interface()}}
	}
	s, below := steps[0], steps[1:]
	if s.field != nil {
		if member := v.FieldByIndex(s.field); !isUnset(member) {
			return valuesAt(member, below, keys)
		}
		return nil
	}
	for key, value := range v.Seq2() {
		if s.keyField != nil {
			key = value.FieldByIndex(s.keyField)
		}
		if name := fmt.Sprint(key); s.key.matches(name) {
			values = append(values, valuesAt(value, below, keys+"\x00"+name)...)
		}
	}
	slices.SortStableFunc(values, func(a, b keyed) int { return strings.Compare(a.Keys, b.Keys) })
	return values
}

// isUnset reports whether a field has no value. An empty object behind a pointer is a value.
func isUnset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}
