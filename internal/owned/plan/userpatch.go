package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// userPatch is a patch that users write in a field of the owner, and that is merged into a pod template. overlay.PodTemplate is one.
type userPatch interface {
	// Origin returns the path of the field in the patch that sets the field at the path at of the merged pod template. If the patch does not
	// set that field, found is false.
	Origin(merged *corev1.PodTemplateSpec, at []any) (path string, found bool)
}

var userPatchType = reflect.TypeFor[userPatch]()

// SeeUserPatch adds to a refusal the paths of the fields in users' patches that may have caused it: users know what they wrote, and not
// what was built from it. live is nil for a creation.
func SeeUserPatch(d *owned.Desired, live client.Object, refusal error) error {
	if !IsInvalid(refusal) {
		return refusal
	}
	patches := patchesIn(reflect.ValueOf(d.Owner.Object), nil)
	if len(patches) == 0 {
		return refusal
	}
	tree := refusedTree(d, live)
	var names []string
	for _, cause := range CausesOf(refusal, tree) {
		template, at := podTemplateAt(tree, cause)
		if template == nil {
			continue
		}
		for i := range patches {
			origin, found := patches[i].patch.Origin(template, at)
			if name := patches[i].path.String() + "." + origin; found && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return refusal
	}
	return fmt.Errorf("%w (see %s of %s)", refusal, strings.Join(names, ", "), d.Owner)
}

// refusedTree returns the object that the API server has refused, as decoded JSON. It returns nil if that is not known.
func refusedTree(d *owned.Desired, live client.Object) map[string]any {
	if live == nil {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.Full)
		if err != nil {
			return nil
		}
		u := &unstructured.Unstructured{Object: tree}
		u.SetGroupVersionKind(d.Kind.GVK) // a typed object has no apiVersion and kind
		return u.Object
	}
	want, err := Tree(d, record.ByApply)
	if err != nil {
		return nil
	}
	have, err := comparableTree(d.Kind, live)
	if err != nil {
		return want
	}
	if merged, _, err := MergeInto(d, &unstructured.Unstructured{Object: have}, want); err == nil {
		return merged
	}
	return want
}

// podTemplateAt returns the pod template that contains the field at cause, and the path from the template to the field. A Pod is its own
// template.
func podTemplateAt(tree map[string]any, cause []applyschema.Step) (*corev1.PodTemplateSpec, []any) {
	start := 0
	if tree["kind"] != "Pod" {
		if start = slices.Index(cause, applyschema.Step("template")) + 1; start == 0 {
			return nil, nil
		}
	}
	content, _ := applyschema.At(tree, cause[:start]).(map[string]any)
	template := &corev1.PodTemplateSpec{}
	if content == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, template) != nil {
		return nil, nil
	}
	var at []any
	if isMetadata := len(cause) > start && (cause[start] == "labels" || cause[start] == "annotations"); isMetadata {
		at = append(at, "metadata") // the API server leaves out this step of the path
	}
	for _, step := range cause[start:] {
		at = append(at, step)
	}
	return template, at
}

// patchField is a field of the owner that has a user's patch.
type patchField struct {
	patch userPatch
	path  *field.Path
}

// patchesIn returns the users' patches in a value, at any depth. path is the path of the value in the owner.
func patchesIn(v reflect.Value, path *field.Path) (found []patchField) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if patch, isPatch := reflect.TypeAssert[userPatch](v); isPatch {
			return []patchField{{patch, path}}
		}
		return patchesIn(v.Elem(), path)
	case reflect.Struct:
		if v.CanAddr() && reflect.PointerTo(v.Type()).Implements(userPatchType) {
			return patchesIn(v.Addr(), path)
		}
		for f, value := range v.Fields() {
			if f.IsExported() {
				found = append(found, patchesIn(value, pathOfField(path, f))...)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			found = append(found, patchesIn(v.Index(i), path.Index(i))...)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			copied := reflect.New(value.Type()) // a value in a map is not addressable
			copied.Elem().Set(value)
			found = append(found, patchesIn(copied, path.Key(fmt.Sprint(key)))...)
		}
	}
	return found
}

// pathOfField returns the path of a field of a struct. An embedded struct adds no step to the path.
func pathOfField(path *field.Path, f reflect.StructField) *field.Path {
	switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
	case name == "" && f.Anonymous:
		return path
	case path == nil:
		return field.NewPath(name)
	default:
		return path.Child(name)
	}
}
