package builtin

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var statefulSetKind = description{
	prototype: &appsv1.StatefulSet{}, resource: "statefulsets", hasStatus: true, hasGeneration: true, hasScale: true,
	behaviour: behaviour{
		validateName:   validation.NameIsDNSLabel,
		setDefaults:    forObject(defaultStatefulSet),
		inJSON:         func(obj client.Object) client.Object { return withClaimKinds(obj.(*appsv1.StatefulSet)) },
		validate:       forValidation(validateStatefulSet),
		validateUpdate: forUpdateValidation(validateStatefulSetUpdate),
		validateStatus: forValidation(func(set *appsv1.StatefulSet) field.ErrorList {
			s := &set.Status
			return validateReplicaCounts(s.Replicas, s.ReadyReplicas, numberField{"readyReplicas", &s.ReadyReplicas}, numberField{"currentReplicas", &s.CurrentReplicas},
				numberField{"updatedReplicas", &s.UpdatedReplicas}, numberField{"availableReplicas", &s.AvailableReplicas})
		}),
	},
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	spec := &set.Spec
	setIfZero(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setIfNil(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setIfNil(&rolling.Partition, 0)
		setIfNil(&rolling.MaxUnavailable, intstr.FromInt32(1))
	}
	setIfNil(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setIfZero(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setIfZero(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setIfNil(&spec.Replicas, 1)
	setIfNil(&spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&spec.Template.Spec)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		claim.TypeMeta = metav1.TypeMeta{} // see withClaimKinds
		setIfZero(&claim.Status.Phase, corev1.ClaimPending)
		defaultVolumeClaim(&claim.Spec)
	}
}

// withClaimKinds returns a StatefulSet whose claim templates have apiVersion and kind, as clients see them in JSON. The server stores
// protobuf and sends it to typed clients, and protobuf has no field for these.
func withClaimKinds(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	shown := *set
	shown.Spec.VolumeClaimTemplates = slices.Clone(set.Spec.VolumeClaimTemplates)
	for i := range shown.Spec.VolumeClaimTemplates {
		shown.Spec.VolumeClaimTemplates[i].TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	}
	return &shown
}

func validateStatefulSet(set *appsv1.StatefulSet) field.ErrorList {
	spec := &set.Spec
	errs := validateNotNegative(specPath, numberField{"replicas", spec.Replicas}, numberField{"minReadySeconds", &spec.MinReadySeconds})
	errs = append(errs, validateStatefulSetStrategy(&spec.UpdateStrategy)...)
	if spec.ServiceName != "" {
		errs = append(errs, validateLabelName(spec.ServiceName, specPath.Child("serviceName"))...)
	}
	errs = append(errs, validateSelector(spec.Selector, &spec.Template, "statefulset")...)
	template, claims := spec.Template.DeepCopy(), []corev1.Volume(nil)
	for _, claim := range spec.VolumeClaimTemplates { // a claim is mounted in place of a volume of the same name
		claims = append(claims, corev1.Volume{Name: claim.Name})
		template.Spec.Volumes = slices.DeleteFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim.Name })
	}
	template.Spec.Volumes = append(claims, template.Spec.Volumes...)
	return append(errs, validateLongRunningTemplate(template, "StatefulSet")...)
}

func validateStatefulSetStrategy(s *appsv1.StatefulSetUpdateStrategy) (errs field.ErrorList) {
	path := specPath.Child("updateStrategy")
	switch s.Type {
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			errs = validateNotNegative(path.Child("rollingUpdate"), numberField{"partition", s.RollingUpdate.Partition})
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

func validateStatefulSetUpdate(obj, live *appsv1.StatefulSet) field.ErrorList {
	return slices.Concat(
		immutable(obj.Spec.Selector, live.Spec.Selector, "spec", "selector"),
		immutable(obj.Spec.VolumeClaimTemplates, live.Spec.VolumeClaimTemplates, "spec", "volumeClaimTemplates"),
		immutable(obj.Spec.ServiceName, live.Spec.ServiceName, "spec", "serviceName"),
		immutable(obj.Spec.PodManagementPolicy, live.Spec.PodManagementPolicy, "spec", "podManagementPolicy"),
	)
}
