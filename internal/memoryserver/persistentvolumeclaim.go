package memoryserver

import (
	corev1 "k8s.io/api/core/v1"
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
			c.Status.Phase = corev1.ClaimPending
			c.Finalizers = append(c.Finalizers, "kubernetes.io/pvc-protection") // an admission plug-in adds it
		}),
		check: checked(func(c *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
			if len(c.Spec.AccessModes) == 0 {
				errs = append(errs, field.Required(specPath.Child("accessModes"), "at least 1 access mode is required"))
			}
			if _, sized := c.Spec.Resources.Requests[corev1.ResourceStorage]; !sized {
				errs = append(errs, field.Required(specPath.Child("resources").Key(string(corev1.ResourceStorage)), ""))
			}
			return errs
		}),
	},
}
