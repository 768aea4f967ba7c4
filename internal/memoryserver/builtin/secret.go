package builtin

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

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
	for key, value := range s.StringData { // StringData can only be written
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// requiredKeys are the keys that a Secret must have, by its type.
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
