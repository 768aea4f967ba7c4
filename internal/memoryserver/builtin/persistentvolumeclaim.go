package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var persistentVolumeClaimKind = description{
	prototype: &corev1.PersistentVolumeClaim{}, resource: "persistentvolumeclaims", hasStatus: true,
	behaviour: behaviour{
		setDefaults: forObject(func(c *corev1.PersistentVolumeClaim) {
			defaultVolumeClaim(&c.Spec)
			setIfZero(&c.Status.Phase, corev1.ClaimPending)
		}),
		prepareForCreate: forObject(func(c *corev1.PersistentVolumeClaim) {
			c.Finalizers = append(c.Finalizers, "kubernetes.io/pvc-protection") // an admission plug-in adds it
		}),
		defaultOnRead: forObject(func(c *corev1.PersistentVolumeClaim) { setIfZero(&c.Status.Phase, corev1.ClaimPending) }),
		validate: forValidation(func(c *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
			if len(c.Spec.AccessModes) == 0 {
				errs = append(errs, field.Required(specPath.Child("accessModes"), "at least 1 access mode is required"))
			}
			if _, sized := c.Spec.Resources.Requests[corev1.ResourceStorage]; !sized {
				errs = append(errs, field.Required(specPath.Child("resources").Key(string(corev1.ResourceStorage)), ""))
			}
			return errs
		}),
		validateUpdate: forUpdateValidation(validateVolumeClaimUpdate),
	},
}

// validateVolumeClaimUpdate allows a bound claim to grow, and a controller to set the volume once.
func validateVolumeClaimUpdate(obj, live *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	rest := obj.Spec.DeepCopy()
	if live.Spec.VolumeName == "" {
		rest.VolumeName = ""
	}
	if live.Spec.StorageClassName == nil { // a controller sets the default class later
		rest.StorageClassName = nil
	}
	size, before, has := obj.Spec.Resources.Requests[corev1.ResourceStorage], live.Spec.Resources.Requests[corev1.ResourceStorage], live.Status.Capacity[corev1.ResourceStorage]
	if obj.Status.Phase == corev1.ClaimBound {
		rest.VolumeAttributesClassName = live.Spec.VolumeAttributesClassName
		if rest.Resources.Requests != nil {
			rest.Resources.Requests[corev1.ResourceStorage] = before
		}
	}
	if !equality.Semantic.DeepEqual(*rest, live.Spec) {
		errs = append(errs, field.Forbidden(specPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	if size.Cmp(before) < 0 && size.Cmp(has) <= 0 {
		errs = append(errs, field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	return append(errs, immutable(obj.Spec.VolumeMode, live.Spec.VolumeMode, "volumeMode")...)
}
