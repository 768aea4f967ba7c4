package memoryserver

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var deploymentKind = builtInKind{
	like: &appsv1.Deployment{}, resource: "deployments", status: true, counted: true, scaled: true,
	behaviour: behaviour{
		defaults: on(defaultDeployment),
		// Annotations are copied to the replica sets, and so are part of what is wanted.
		counts: onEither(func(made, live *appsv1.Deployment) bool {
			return !equality.Semantic.DeepEqual(made.Annotations, live.Annotations)
		}),
		status: onBoth(func(made, live *appsv1.Deployment) { made.Labels = live.Labels }),
		check:  checked(checkDeployment),
		compare: compared(func(made, live *appsv1.Deployment) field.ErrorList {
			return immutable(made.Spec.Selector, live.Spec.Selector, "spec", "selector")
		}),
		checkStatus: checked(checkDeploymentStatus),
	},
}

func onEither[T client.Object](f func(made, live T) bool) func(made, live client.Object) bool {
	return func(made, live client.Object) bool { return f(made.(T), live.(T)) }
}

func defaultDeployment(d *appsv1.Deployment) {
	absent(&d.Spec.Replicas, 1)
	unset(&d.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		absent(&d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		absent(&d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		absent(&d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	absent(&d.Spec.RevisionHistoryLimit, 10)
	absent(&d.Spec.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&d.Spec.Template.Spec)
}

func checkDeployment(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	errs := checkNotNegative(specPath, number{"replicas", spec.Replicas})
	errs = append(errs, checkSelector(spec.Selector, &spec.Template, "deployment")...)
	errs = append(errs, checkForever(&spec.Template, "ReplicaSet")...)
	errs = append(errs, checkDeploymentStrategy(&spec.Strategy)...)
	errs = append(errs, checkNotNegative(specPath, number{"minReadySeconds", &spec.MinReadySeconds},
		number{"revisionHistoryLimit", spec.RevisionHistoryLimit}, number{"progressDeadlineSeconds", spec.ProgressDeadlineSeconds})...)
	if spec.ProgressDeadlineSeconds != nil && *spec.ProgressDeadlineSeconds <= spec.MinReadySeconds {
		errs = append(errs, field.Invalid(specPath.Child("progressDeadlineSeconds"), spec.ProgressDeadlineSeconds, "must be greater than minReadySeconds"))
	}
	return errs
}

func checkDeploymentStrategy(s *appsv1.DeploymentStrategy) (errs field.ErrorList) {
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
	errs = append(checkShare(unavailable, rolling.Child("maxUnavailable")), checkShare(surge, rolling.Child("maxSurge"))...)
	if share(unavailable) == 0 && share(surge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	if unavailable.Type == intstr.String && share(unavailable) > 100 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *unavailable, "must not be greater than 100%"))
	}
	return errs
}

// share is the number of an integer or percentage.
func share(s *intstr.IntOrString) int {
	value, err := intstr.GetScaledValueFromIntOrPercent(s, 100, false)
	if err != nil {
		return 0
	}
	return value
}

func checkDeploymentStatus(d *appsv1.Deployment) field.ErrorList {
	s, path := &d.Status, field.NewPath("status")
	errs := validation.ValidateNonnegativeField(s.ObservedGeneration, path.Child("observedGeneration"))
	errs = append(errs, checkNotNegative(path, number{"replicas", &s.Replicas}, number{"updatedReplicas", &s.UpdatedReplicas},
		number{"readyReplicas", &s.ReadyReplicas}, number{"availableReplicas", &s.AvailableReplicas},
		number{"unavailableReplicas", &s.UnavailableReplicas}, number{"terminatingReplicas", s.TerminatingReplicas},
		number{"collisionCount", s.CollisionCount})...)
	return append(errs, checkReplicas(s.Replicas, s.ReadyReplicas, number{"updatedReplicas", &s.UpdatedReplicas},
		number{"readyReplicas", &s.ReadyReplicas}, number{"availableReplicas", &s.AvailableReplicas})...)
}

// checkReplicas checks that no part of the replicas is more than all of them.
func checkReplicas(all, ready int32, parts ...number) (errs field.ErrorList) {
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
