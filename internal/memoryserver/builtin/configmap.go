package builtin

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var configMapKind = description{
	prototype: &corev1.ConfigMap{}, resource: "configmaps",
	behaviour: behaviour{
		validate: forValidation(func(c *corev1.ConfigMap) field.ErrorList {
			errs, size := validateData(c.Data, "data", func(key string) bool { _, twice := c.BinaryData[key]; return twice })
			more, binarySize := validateData(c.BinaryData, "binaryData", nil)
			return append(append(errs, more...), validateSize(size+binarySize, field.NewPath(""))...)
		}),
		validateUpdate: forUpdateValidation(func(obj, live *corev1.ConfigMap) (errs field.ErrorList) {
			if !ptr.Deref(live.Immutable, false) {
				return nil
			}
			return validateFrozen(obj.Immutable, dataField{"data", obj.Data, live.Data}, dataField{"binaryData", obj.BinaryData, live.BinaryData})
		}),
	},
}

// validateData validates the keys of a ConfigMap or Secret, and returns the size of the values in bytes.
func validateData[V string | []byte](data map[string]V, name string, elsewhere func(key string) bool) (errs field.ErrorList, size int) {
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

func validateSize(size int, path *field.Path) field.ErrorList {
	if size <= corev1.MaxSecretSize {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "", corev1.MaxSecretSize)}
}

type dataField struct {
	field     string
	obj, live any
}

// validateFrozen validates the update of a ConfigMap or Secret that is immutable.
func validateFrozen(still *bool, parts ...dataField) (errs field.ErrorList) {
	const message = "field is immutable when `immutable` is set"
	if !ptr.Deref(still, false) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), message))
	}
	for _, part := range parts {
		if !equality.Semantic.DeepEqual(part.obj, part.live) {
			errs = append(errs, field.Forbidden(field.NewPath(part.field), message))
		}
	}
	return errs
}
