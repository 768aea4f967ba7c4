package builtin

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var autoscalerKind = description{
	prototype: &autoscalingv2.HorizontalPodAutoscaler{}, resource: "horizontalpodautoscalers", hasStatus: true, hasGeneration: true,
	behaviour: behaviour{setDefaults: forObject(defaultAutoscaler), validate: forValidation(validateAutoscaler)},
}

func defaultAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) {
	setIfNil(&a.Spec.MinReplicas, 1)
	if len(a.Spec.Metrics) == 0 {
		a.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](80),
			}},
		}}
	}
	if a.Spec.Behavior == nil {
		return
	}
	byPercent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
	byPods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
	defaultScaling(&a.Spec.Behavior.ScaleUp, byPods, byPercent)
	setIfNil(&a.Spec.Behavior.ScaleUp.StabilizationWindowSeconds, 0)
	defaultScaling(&a.Spec.Behavior.ScaleDown, byPercent)
}

func defaultScaling(rules **autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	setIfNil(rules, autoscalingv2.HPAScalingRules{})
	setIfNil(&(*rules).SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if (*rules).Policies == nil {
		(*rules).Policies = policies
	}
}

func validateAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) (errs field.ErrorList) {
	if minimum := ptr.Deref(a.Spec.MinReplicas, 1); minimum < 1 {
		errs = append(errs, field.Invalid(specPath.Child("minReplicas"), minimum, "must be greater than or equal to 1"))
	}
	switch {
	case a.Spec.MaxReplicas == 0:
		errs = append(errs, field.Required(specPath.Child("maxReplicas"), ""))
	case a.Spec.MaxReplicas < 0:
		errs = append(errs, field.Invalid(specPath.Child("maxReplicas"), a.Spec.MaxReplicas, "must be greater than or equal to 1"))
	}
	if a.Spec.MinReplicas != nil && a.Spec.MaxReplicas < *a.Spec.MinReplicas {
		errs = append(errs, field.Invalid(specPath.Child("maxReplicas"), a.Spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	target := specPath.Child("scaleTargetRef")
	if a.Spec.ScaleTargetRef.Kind == "" {
		errs = append(errs, field.Required(target.Child("kind"), ""))
	}
	if a.Spec.ScaleTargetRef.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	if a.Spec.ScaleTargetRef.APIVersion == "" && a.Spec.ScaleTargetRef.Kind != "ReplicationController" {
		errs = append(errs, field.Invalid(target.Child("apiVersion"), "", "apiVersion must specify API group"))
	}
	return errs
}
