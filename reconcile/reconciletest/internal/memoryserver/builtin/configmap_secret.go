package builtin

import (
	"encoding/json"
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

// validateFrozen validates the update of a ConfigMap or Secret that was immutable before. still is its new field immutable.
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

var secretKind = description{
	prototype: &corev1.Secret{}, resource: "secrets",
	behaviour: behaviour{
		setDefaults: forObject(defaultSecret),
		validate:    forValidation(validateSecret),
		validateUpdate: forUpdateValidation(func(obj, live *corev1.Secret) field.ErrorList {
			errs := immutable(obj.Type, live.Type, "type")
			if !ptr.Deref(live.Immutable, false) {
				return errs
			}
			return append(errs, validateFrozen(obj.Immutable, dataField{"data", obj.Data, live.Data})...)
		}),
	},
}

func defaultSecret(s *corev1.Secret) {
	setIfZero(&s.Type, corev1.SecretTypeOpaque)
	for key, value := range s.StringData { // StringData is never read
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// requiredKeys are the keys that a Secret must have, for each type.
var requiredKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	path := field.NewPath("data")
	errs, size := validateData(s.Data, "data", nil)
	errs = append(errs, validateSize(size, path)...)
	for _, key := range requiredKeys[s.Type] {
		value, has := s.Data[key]
		switch {
		case !has:
			errs = append(errs, field.Required(path.Key(key), ""))
		case s.Type == corev1.SecretTypeDockercfg, s.Type == corev1.SecretTypeDockerConfigJson:
			if err := json.Unmarshal(value, &map[string]any{}); err != nil {
				errs = append(errs, field.Invalid(path.Key(key), "<secret contents redacted>", err.Error()))
			}
		}
	}
	if s.Type == corev1.SecretTypeBasicAuth && s.Data[corev1.BasicAuthUsernameKey] == nil && s.Data[corev1.BasicAuthPasswordKey] == nil {
		errs = append(errs, field.Required(path.Key(corev1.BasicAuthUsernameKey), ""), field.Required(path.Key(corev1.BasicAuthPasswordKey), ""))
	}
	if s.Type == corev1.SecretTypeServiceAccountToken && s.Annotations[corev1.ServiceAccountNameKey] == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
	}
	return errs
}
