package overlay

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// unions has groups of fields that exclude each other, by the type of the object that has them. The API server refuses an object with two
// fields of a group. A strategic merge does not know that: it keeps the field of the base beside the field of the patch.
var unions = map[reflect.Type][][]string{
	reflect.TypeFor[corev1.Volume]():           {fieldNamesOf[corev1.VolumeSource]()},
	reflect.TypeFor[corev1.Probe]():            {fieldNamesOf[corev1.ProbeHandler]()},
	reflect.TypeFor[corev1.LifecycleHandler](): {fieldNamesOf[corev1.LifecycleHandler]()},
	reflect.TypeFor[corev1.EnvVar]():           {{"value", "valueFrom"}},
	reflect.TypeFor[corev1.EnvVarSource]():     {fieldNamesOf[corev1.EnvVarSource]()},
	reflect.TypeFor[corev1.VolumeMount]():      {{"subPath", "subPathExpr"}},
	reflect.TypeFor[corev1.PodResourceClaim](): {{"resourceClaimName", "resourceClaimTemplateName"}},
	reflect.TypeFor[corev1.FCVolumeSource]():   {{"targetWWNs", "wwids"}, {"lun", "wwids"}},
}

// local has the types of security profiles. Their field localhostProfile must be set for the type Localhost, and must not
// be set for any other type.
var local = []reflect.Type{reflect.TypeFor[corev1.SeccompProfile](), reflect.TypeFor[corev1.AppArmorProfile]()}

const localhostProfile = "localhostProfile"

// fieldNamesOf returns the JSON names of a struct's fields.
func fieldNamesOf[T any]() (names []string) {
	for name := range fieldsOf(reflect.TypeFor[T]()) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// replaceOthers adds nulls to the patch, which remove the fields of the base that exclude a field of the patch.
func replaceOthers(base, patch map[string]any, t reflect.Type) {
	if _, says := patch[localhostProfile]; slices.Contains(local, t) && !says && patch["type"] != nil && patch["type"] != base["type"] && base[localhostProfile] != nil {
		patch[localhostProfile] = nil
	}
	for _, union := range unions[t] {
		if !slices.ContainsFunc(union, func(name string) bool { return isSet(patch[name]) }) {
			continue
		}
		for _, name := range union {
			if !isSet(patch[name]) && base[name] != nil {
				patch[name] = nil
			}
		}
	}
}

// isSet reports whether a value of a patch sets a field. A null and an object with $patch: delete remove it.
func isSet(value any) bool {
	object, isObject := value.(map[string]any)
	return value != nil && (!isObject || object[patchDirective] != remove)
}
