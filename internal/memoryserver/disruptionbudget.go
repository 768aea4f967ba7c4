package memoryserver

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var disruptionBudgetKind = builtInKind{
	like: &policyv1.PodDisruptionBudget{}, resource: "poddisruptionbudgets", status: true, counted: true, lock: true,
	behaviour: behaviour{anyFinalizer: true, check: checked(checkDisruptionBudget)},
}

func checkDisruptionBudget(b *policyv1.PodDisruptionBudget) (errs field.ErrorList) {
	if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(specPath, b.Spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	if b.Spec.MinAvailable != nil {
		errs = append(errs, checkShare(b.Spec.MinAvailable, specPath.Child("minAvailable"))...)
	}
	if b.Spec.MaxUnavailable != nil {
		errs = append(errs, checkShare(b.Spec.MaxUnavailable, specPath.Child("maxUnavailable"))...)
	}
	return append(errs, metav1validation.ValidateLabelSelector(b.Spec.Selector, metav1validation.LabelSelectorValidationOptions{}, specPath.Child("selector"))...)
}
