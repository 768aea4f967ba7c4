package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var leaseKind = description{
	prototype: &coordinationv1.Lease{}, resource: "leases", requireVersion: true, createOnUpdate: true,
	behaviour: behaviour{anyFinalizer: true, validate: forValidation(func(l *coordinationv1.Lease) (errs field.ErrorList) {
		if seconds := l.Spec.LeaseDurationSeconds; seconds != nil && *seconds <= 0 {
			errs = append(errs, field.Invalid(specPath.Child("leaseDurationSeconds"), *seconds, "must be greater than 0"))
		}
		if changes := l.Spec.LeaseTransitions; changes != nil && *changes < 0 {
			errs = append(errs, field.Invalid(specPath.Child("leaseTransitions"), *changes, "must be greater than or equal to 0"))
		}
		return errs
	})},
}
