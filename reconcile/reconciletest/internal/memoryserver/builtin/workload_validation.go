package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var specPath = field.NewPath("spec")

// validateSelector validates a workload's selector against the labels of its template. kind is the name of the workload in the real
// server's message, which is not always its kind.
func validateSelector(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, kind string) (errs field.ErrorList) {
	path := specPath.Child("selector")
	switch {
	case selector == nil && kind == "daemonset": // the real server reports only the labels
	case selector == nil:
		errs = append(errs, field.Required(path, ""))
	default:
		errs = metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path, selector, "empty selector is invalid for "+kind))
		}
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path, selector, "invalid label selector"))
	case !parsed.Empty() && !parsed.Matches(labels.Set(template.Labels)):
		errs = append(errs, field.Invalid(specPath.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	return errs
}

// validateLongRunningTemplate validates the template of a workload whose pods run until they are deleted.
func validateLongRunningTemplate(template *corev1.PodTemplateSpec, kind string) field.ErrorList {
	path := specPath.Child("template")
	errs := validatePodTemplate(template, path)
	if template.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), template.Spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

// validateNotNegative validates that no number is negative.
func validateNotNegative(parent *field.Path, numbers ...numberField) (errs field.ErrorList) {
	for _, n := range numbers {
		if n.value != nil {
			errs = append(errs, validation.ValidateNonnegativeField(int64(*n.value), parent.Child(n.field))...)
		}
	}
	return errs
}

type numberField struct {
	field string
	value *int32 // nil: not set
}

func validateIntOrPercent(share *intstr.IntOrString, path *field.Path) (errs field.ErrorList) {
	if share.Type == intstr.Int {
		return validation.ValidateNonnegativeField(int64(share.IntVal), path)
	}
	for _, message := range utilvalidation.IsValidPercent(share.StrVal) {
		errs = append(errs, field.Invalid(path, *share, message))
	}
	return errs
}

// immutable validates a field that must never change.
func immutable(obj, live any, path ...string) field.ErrorList {
	return validation.ValidateImmutableField(obj, live, field.NewPath(path[0], path[1:]...))
}
