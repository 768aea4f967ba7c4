package builtin

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// The kinds with few rules follow: Namespace, PersistentVolumeClaim, HorizontalPodAutoscaler, PodDisruptionBudget, Lease,
// PriorityClass, StorageClass and ControllerRevision.

var namespaceKind = description{
	prototype: &corev1.Namespace{}, resource: "namespaces", clusterScoped: true, hasStatus: true,
	behaviour: behaviour{
		validateName: validation.NameIsDNSLabel,
		setDefaults: forObject(func(n *corev1.Namespace) {
			if n.Name != "" {
				setNameLabel(n)
			}
			setIfZero(&n.Status.Phase, corev1.NamespaceActive)
		}),
		prepareForCreate: forObject(func(n *corev1.Namespace) {
			setNameLabel(n)
			n.Status.Phase = corev1.NamespaceActive
			if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
				n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		}),
		holdDeletion:     forObject(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }),
		prepareForUpdate: forUpdate(func(obj, live *corev1.Namespace) { obj.Spec.Finalizers = live.Spec.Finalizers }),
	},
}

func setNameLabel(n *corev1.Namespace) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

var persistentVolumeClaimKind = description{
	prototype: &corev1.PersistentVolumeClaim{}, resource: "persistentvolumeclaims", hasStatus: true,
	behaviour: behaviour{
		setDefaults: forObject(func(c *corev1.PersistentVolumeClaim) {
			defaultVolumeClaim(&c.Spec)
			setIfZero(&c.Status.Phase, corev1.ClaimPending)
		}),
		prepareForCreate: forObject(func(c *corev1.PersistentVolumeClaim) {
			c.Finalizers = append(c.Finalizers, "kubernetes.io/pvc-protection") // in a cluster an admission plug-in adds it
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

// validateVolumeClaimUpdate allows two changes: a bound claim may ask for more storage, and a controller may set the volume once.
func validateVolumeClaimUpdate(obj, live *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	rest := obj.Spec.DeepCopy()
	if live.Spec.VolumeName == "" {
		rest.VolumeName = ""
	}
	if live.Spec.StorageClassName == nil { // a controller may set the default class later
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

var priorityClassKind = description{
	prototype: &schedulingv1.PriorityClass{}, resource: "priorityclasses", clusterScoped: true, hasGeneration: true,
	behaviour: behaviour{
		setDefaults: forObject(func(c *schedulingv1.PriorityClass) {
			setIfNil(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
		}),
		validateUpdate: forUpdateValidation(func(obj, live *schedulingv1.PriorityClass) (errs field.ErrorList) {
			if obj.Value != live.Value {
				errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
			}
			return append(errs, immutable(obj.PreemptionPolicy, live.PreemptionPolicy, "preemptionPolicy")...)
		}),
	},
}

var storageClassKind = description{
	prototype: &storagev1.StorageClass{}, resource: "storageclasses", clusterScoped: true,
	behaviour: behaviour{
		setDefaults: forObject(func(c *storagev1.StorageClass) {
			setIfNil(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
			setIfNil(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
		}),
		validateUpdate: forUpdateValidation(func(obj, live *storagev1.StorageClass) (errs field.ErrorList) {
			errs = append(errs, immutable(obj.Parameters, live.Parameters, "parameters")...)
			errs = append(errs, immutable(obj.Provisioner, live.Provisioner, "provisioner")...)
			errs = append(errs, immutable(obj.ReclaimPolicy, live.ReclaimPolicy, "reclaimPolicy")...)
			return append(errs, immutable(obj.VolumeBindingMode, live.VolumeBindingMode, "volumeBindingMode")...)
		}),
	},
}

var controllerRevisionKind = description{
	prototype: &appsv1.ControllerRevision{}, resource: "controllerrevisions",
	behaviour: behaviour{
		validateUpdate: forUpdateValidation(func(obj, live *appsv1.ControllerRevision) field.ErrorList {
			return immutable(obj.Data, live.Data, "data")
		}),
	},
}
