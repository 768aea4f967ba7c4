package memoryserver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var persistentVolumeClaimKind = builtInKind{
	like: &corev1.PersistentVolumeClaim{}, resource: "persistentvolumeclaims", status: true,
	behaviour: behaviour{
		defaults: on(func(c *corev1.PersistentVolumeClaim) {
			defaultVolumeClaim(&c.Spec)
			unset(&c.Status.Phase, corev1.ClaimPending)
		}),
		create: on(func(c *corev1.PersistentVolumeClaim) {
			c.Finalizers = append(c.Finalizers, "kubernetes.io/pvc-protection") // an admission plug-in adds it
		}),
		read: on(func(c *corev1.PersistentVolumeClaim) { unset(&c.Status.Phase, corev1.ClaimPending) }),
		check: checked(func(c *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
			if len(c.Spec.AccessModes) == 0 {
				errs = append(errs, field.Required(specPath.Child("accessModes"), "at least 1 access mode is required"))
			}
			if _, sized := c.Spec.Resources.Requests[corev1.ResourceStorage]; !sized {
				errs = append(errs, field.Required(specPath.Child("resources").Key(string(corev1.ResourceStorage)), ""))
			}
			return errs
		}),
		compare: compared(compareVolumeClaims),
	},
}

// compareVolumeClaims lets a bound claim grow, and a controller set the volume once.
func compareVolumeClaims(made, live *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	rest := made.Spec.DeepCopy()
	if live.Spec.VolumeName == "" {
		rest.VolumeName = ""
	}
	if live.Spec.StorageClassName == nil { // the default class may come to exist
		rest.StorageClassName = nil
	}
	size, before, has := made.Spec.Resources.Requests[corev1.ResourceStorage], live.Spec.Resources.Requests[corev1.ResourceStorage], live.Status.Capacity[corev1.ResourceStorage]
	if made.Status.Phase == corev1.ClaimBound {
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
	return append(errs, immutable(made.Spec.VolumeMode, live.Spec.VolumeMode, "volumeMode")...)
}
