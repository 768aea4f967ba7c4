package memoryserver

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var statefulSetKind = builtInKind{
	like: &appsv1.StatefulSet{}, resource: "statefulsets", status: true, counted: true, scaled: true,
	behaviour: behaviour{
		validName: validation.NameIsDNSLabel,
		defaults:  on(defaultStatefulSet),
		check:     checked(checkStatefulSet),
		compare:   compared(compareStatefulSets),
		checkStatus: checked(func(set *appsv1.StatefulSet) field.ErrorList {
			s := &set.Status
			return checkReplicas(s.Replicas, s.ReadyReplicas, number{"readyReplicas", &s.ReadyReplicas}, number{"currentReplicas", &s.CurrentReplicas},
				number{"updatedReplicas", &s.UpdatedReplicas}, number{"availableReplicas", &s.AvailableReplicas})
		}),
	},
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	spec := &set.Spec
	unset(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		absent(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		absent(&rolling.Partition, 0)
	}
	absent(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	unset(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	unset(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	absent(&spec.Replicas, 1)
	absent(&spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&spec.Template.Spec)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		unset(&claim.Status.Phase, corev1.ClaimPending)
		defaultVolumeClaim(&claim.Spec)
	}
}

func checkStatefulSet(set *appsv1.StatefulSet) field.ErrorList {
	spec := &set.Spec
	errs := checkNotNegative(specPath, number{"replicas", spec.Replicas}, number{"minReadySeconds", &spec.MinReadySeconds})
	errs = append(errs, checkSetStrategy(&spec.UpdateStrategy)...)
	if spec.ServiceName != "" {
		errs = append(errs, checkLabelName(spec.ServiceName, specPath.Child("serviceName"))...)
	}
	errs = append(errs, checkSelector(spec.Selector, &spec.Template, "statefulset")...)
	template := spec.Template.DeepCopy()
	for _, claim := range spec.VolumeClaimTemplates { // they are mounted as volumes
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: claim.Name})
	}
	return append(errs, checkForever(template, "StatefulSet")...)
}

func checkSetStrategy(s *appsv1.StatefulSetUpdateStrategy) (errs field.ErrorList) {
	path := specPath.Child("updateStrategy")
	switch s.Type {
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			errs = checkNotNegative(path.Child("rollingUpdate"), number{"partition", s.RollingUpdate.Partition})
		}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			errs = append(errs, field.Invalid(path.Child("rollingUpdate"), s.RollingUpdate, "only allowed for updateStrategy 'RollingUpdate'"))
		}
	default:
		errs = append(errs, field.Invalid(path, s, "must be 'RollingUpdate' or 'OnDelete'"))
	}
	return errs
}

func compareStatefulSets(made, live *appsv1.StatefulSet) field.ErrorList {
	rest := made.Spec
	rest.Replicas, rest.Template, rest.UpdateStrategy = live.Spec.Replicas, live.Spec.Template, live.Spec.UpdateStrategy
	rest.MinReadySeconds, rest.Ordinals, rest.RevisionHistoryLimit = live.Spec.MinReadySeconds, live.Spec.Ordinals, live.Spec.RevisionHistoryLimit
	rest.PersistentVolumeClaimRetentionPolicy = live.Spec.PersistentVolumeClaimRetentionPolicy
	if equality.Semantic.DeepEqual(rest, live.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "+
		"'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
}
