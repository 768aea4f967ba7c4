package builtin

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var disruptionBudgetKind = description{
	prototype: &policyv1.PodDisruptionBudget{}, resource: "poddisruptionbudgets", hasStatus: true, hasGeneration: true, requireVersion: true,
	behaviour: behaviour{anyFinalizer: true, validate: forValidation(validateDisruptionBudget)},
}

func validateDisruptionBudget(b *policyv1.PodDisruptionBudget) (errs field.ErrorList) {
	if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(specPath, b.Spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	if b.Spec.MinAvailable != nil {
		errs = append(errs, validateIntOrPercent(b.Spec.MinAvailable, specPath.Child("minAvailable"))...)
	}
	if b.Spec.MaxUnavailable != nil {
		errs = append(errs, validateIntOrPercent(b.Spec.MaxUnavailable, specPath.Child("maxUnavailable"))...)
	}
	return append(errs, metav1validation.ValidateLabelSelector(b.Spec.Selector, metav1validation.LabelSelectorValidationOptions{}, specPath.Child("selector"))...)
}
