package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var deploymentKind = description{
	prototype: &appsv1.Deployment{}, resource: "deployments", hasStatus: true, hasGeneration: true, hasScale: true,
	statusResets: []fieldpath.Path{fieldpath.MakePathOrDie("metadata", "labels")},
	behaviour: behaviour{
		setDefaults: forObject(defaultDeployment),
		// The controller copies annotations to the ReplicaSets, so a change of them increases the generation, like a change of the spec.
		changesGeneration: forComparison(func(obj, live *appsv1.Deployment) bool {
			return !equality.Semantic.DeepEqual(obj.Annotations, live.Annotations)
		}),
		prepareForStatusUpdate: forUpdate(func(obj, live *appsv1.Deployment) { obj.Labels = live.Labels }),
		validate:               forValidation(validateDeployment),
		validateUpdate: forUpdateValidation(func(obj, live *appsv1.Deployment) field.ErrorList {
			return immutable(obj.Spec.Selector, live.Spec.Selector, "spec", "selector")
		}),
		validateStatus: forValidation(validateDeploymentStatus),
	},
}

func defaultDeployment(d *appsv1.Deployment) {
	setIfNil(&d.Spec.Replicas, 1)
	setIfZero(&d.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setIfNil(&d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setIfNil(&d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setIfNil(&d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setIfNil(&d.Spec.RevisionHistoryLimit, 10)
	setIfNil(&d.Spec.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&d.Spec.Template.Spec)
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	errs := validateNotNegative(specPath, numberField{"replicas", spec.Replicas})
	errs = append(errs, validateSelector(spec.Selector, &spec.Template, "deployment")...)
	errs = append(errs, validateLongRunningTemplate(&spec.Template, "ReplicaSet")...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy)...)
	errs = append(errs, validateNotNegative(specPath, numberField{"minReadySeconds", &spec.MinReadySeconds},
		numberField{"revisionHistoryLimit", spec.RevisionHistoryLimit}, numberField{"progressDeadlineSeconds", spec.ProgressDeadlineSeconds})...)
	if spec.ProgressDeadlineSeconds != nil && *spec.ProgressDeadlineSeconds <= spec.MinReadySeconds {
		errs = append(errs, field.Invalid(specPath.Child("progressDeadlineSeconds"), spec.ProgressDeadlineSeconds, "must be greater than minReadySeconds"))
	}
	return errs
}

func validateDeploymentStrategy(s *appsv1.DeploymentStrategy) (errs field.ErrorList) {
	path := specPath.Child("strategy")
	rolling := path.Child("rollingUpdate")
	switch {
	case s.Type == appsv1.RecreateDeploymentStrategyType && s.RollingUpdate != nil:
		return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
	case s.Type == appsv1.RecreateDeploymentStrategyType:
		return nil
	case s.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return field.ErrorList{field.NotSupported(path, s, []appsv1.DeploymentStrategyType{
			appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
	}
	unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
	errs = append(validateIntOrPercent(unavailable, rolling.Child("maxUnavailable")), validateIntOrPercent(surge, rolling.Child("maxSurge"))...)
	if intOrPercentValue(unavailable) == 0 && intOrPercentValue(surge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	if unavailable.Type == intstr.String && intOrPercentValue(unavailable) > 100 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *unavailable, "must not be greater than 100%"))
	}
	return errs
}

// intOrPercentValue returns the number of an integer or a percentage.
func intOrPercentValue(s *intstr.IntOrString) int {
	value, err := intstr.GetScaledValueFromIntOrPercent(s, 100, false)
	if err != nil {
		return 0
	}
	return value
}

func validateDeploymentStatus(d *appsv1.Deployment) field.ErrorList {
	s, path := &d.Status, field.NewPath("status")
	errs := validation.ValidateNonnegativeField(s.ObservedGeneration, path.Child("observedGeneration"))
	errs = append(errs, validateNotNegative(path, numberField{"replicas", &s.Replicas}, numberField{"updatedReplicas", &s.UpdatedReplicas},
		numberField{"readyReplicas", &s.ReadyReplicas}, numberField{"availableReplicas", &s.AvailableReplicas},
		numberField{"unavailableReplicas", &s.UnavailableReplicas}, numberField{"terminatingReplicas", s.TerminatingReplicas},
		numberField{"collisionCount", s.CollisionCount})...)
	return append(errs, validateReplicaCounts(s.Replicas, s.ReadyReplicas, numberField{"updatedReplicas", &s.UpdatedReplicas},
		numberField{"readyReplicas", &s.ReadyReplicas}, numberField{"availableReplicas", &s.AvailableReplicas})...)
}

// validateReplicaCounts validates that no number in the status is greater than the number of all replicas.
func validateReplicaCounts(all, ready int32, parts ...numberField) (errs field.ErrorList) {
	path := field.NewPath("status")
	for _, part := range parts {
		if *part.value > all {
			errs = append(errs, field.Invalid(path.Child(part.field), *part.value, "cannot be greater than status.replicas"))
		}
	}
	if last := parts[len(parts)-1]; last.field == "availableReplicas" && *last.value > ready {
		errs = append(errs, field.Invalid(path.Child(last.field), *last.value, "cannot be greater than readyReplicas"))
	}
	return errs
}

var replicaSetKind = description{
	prototype: &appsv1.ReplicaSet{}, resource: "replicasets", hasStatus: true, hasGeneration: true, hasScale: true,
	behaviour: behaviour{
		setDefaults: forObject(func(r *appsv1.ReplicaSet) {
			setIfNil(&r.Spec.Replicas, 1)
			defaultPodSpec(&r.Spec.Template.Spec)
		}),
		validate: forValidation(func(r *appsv1.ReplicaSet) field.ErrorList {
			errs := validateNotNegative(specPath, numberField{"replicas", r.Spec.Replicas}, numberField{"minReadySeconds", &r.Spec.MinReadySeconds})
			errs = append(errs, validateSelector(r.Spec.Selector, &r.Spec.Template, "deployment")...)
			return append(errs, validateLongRunningTemplate(&r.Spec.Template, "ReplicaSet")...)
		}),
		validateUpdate: forUpdateValidation(func(obj, live *appsv1.ReplicaSet) field.ErrorList {
			return immutable(obj.Spec.Selector, live.Spec.Selector, "spec", "selector")
		}),
		validateStatus: forValidation(func(r *appsv1.ReplicaSet) field.ErrorList {
			s := &r.Status
			return validateReplicaCounts(s.Replicas, s.ReadyReplicas, numberField{"fullyLabeledReplicas", &s.FullyLabeledReplicas},
				numberField{"readyReplicas", &s.ReadyReplicas}, numberField{"availableReplicas", &s.AvailableReplicas})
		}),
	},
}
