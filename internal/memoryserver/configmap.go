package memoryserver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var configMapKind = builtInKind{
	like: &corev1.ConfigMap{}, resource: "configmaps",
	behaviour: behaviour{
		check: checked(func(c *corev1.ConfigMap) field.ErrorList {
			errs, size := checkData(c.Data, "data", func(key string) bool { _, twice := c.BinaryData[key]; return twice })
			more, binarySize := checkData(c.BinaryData, "binaryData", nil)
			return append(append(errs, more...), checkSize(size+binarySize, field.NewPath(""))...)
		}),
		compare: compared(func(made, live *corev1.ConfigMap) (errs field.ErrorList) {
			if !ptr.Deref(live.Immutable, false) {
				return nil
			}
			return frozen(made.Immutable, same{"data", made.Data, live.Data}, same{"binaryData", made.BinaryData, live.BinaryData})
		}),
	},
}

// checkData checks the keys of a ConfigMap or Secret.
func checkData[V string | []byte](data map[string]V, name string, elsewhere func(key string) bool) (errs field.ErrorList, size int) {
	path := field.NewPath(name)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		for _, message := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(path.Key(key), key, message))
		}
		if elsewhere != nil && elsewhere(key) {
			errs = append(errs, field.Invalid(path.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(data[key])
	}
	return errs, size
}

func checkSize(size int, path *field.Path) field.ErrorList {
	if size <= corev1.MaxSecretSize {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "", corev1.MaxSecretSize)}
}

type same struct {
	field      string
	made, live any
}

// frozen checks a ConfigMap or Secret that was made immutable.
func frozen(still *bool, parts ...same) (errs field.ErrorList) {
	const message = "field is immutable when `immutable` is set"
	if !ptr.Deref(still, false) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), message))
	}
	for _, part := range parts {
		if !equality.Semantic.DeepEqual(part.made, part.live) {
			errs = append(errs, field.Forbidden(field.NewPath(part.field), message))
		}
	}
	return errs
}
