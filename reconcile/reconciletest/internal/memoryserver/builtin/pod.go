package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var podKind = description{
	prototype: &corev1.Pod{}, resource: "pods", hasStatus: true, hasGeneration: true,
	statusResets: []fieldpath.Path{
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"), fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	},
	behaviour: behaviour{
		setDefaults: forObject(defaultPod),
		prepareForCreate: forObject(func(pod *corev1.Pod) {
			admitPod(pod)
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(pod)}
		}),
		prepareForUpdate: forUpdate(func(obj, _ *corev1.Pod) { addOutageTolerations(obj) }),
		prepareForStatusUpdate: forUpdate(func(obj, live *corev1.Pod) {
			obj.DeletionTimestamp, obj.OwnerReferences = nil, live.OwnerReferences
			setIfZero(&obj.Status.QOSClass, live.Status.QOSClass)
		}),
		gracePeriod:    podGracePeriod,
		validate:       forValidation(func(pod *corev1.Pod) field.ErrorList { return validatePodSpec(&pod.Spec, specPath) }),
		validateUpdate: forUpdateValidation(validatePodUpdate),
	},
}

// podGracePeriod returns how many seconds the kubelet has to stop the pod. A pod without a node is deleted at once.
func podGracePeriod(live client.Object, requested *int64) int64 {
	pod := live.(*corev1.Pod)
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	period := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
	if requested != nil {
		period = *requested
	}
	if period < 0 {
		return 1
	}
	return period
}

// validatePodUpdate allows only a few fields to change. The real server's message goes on with a diff, which is left
// out here.
func validatePodUpdate(obj, live *corev1.Pod) field.ErrorList {
	rest := obj.Spec.DeepCopy()
	if len(rest.Containers) != len(live.Spec.Containers) || len(rest.InitContainers) != len(live.Spec.InitContainers) {
		return field.ErrorList{field.Forbidden(specPath.Child("containers"), "pod updates may not add or remove containers")}
	}
	for i := range rest.Containers {
		rest.Containers[i].Image = live.Spec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = live.Spec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds, rest.SchedulingGates, rest.Tolerations = live.Spec.ActiveDeadlineSeconds, live.Spec.SchedulingGates, live.Spec.Tolerations
	errs := validateTolerationsUpdate(obj.Spec.Tolerations, live.Spec.Tolerations)
	if equality.Semantic.DeepEqual(*rest, live.Spec) {
		return errs
	}
	return append(errs, field.Forbidden(specPath, "pod updates may not change fields other than `spec.containers[*].image`,"+
		"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
		"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
}

func validateTolerationsUpdate(obj, live []corev1.Toleration) field.ErrorList {
	for _, old := range live {
		if !slices.ContainsFunc(obj, func(t corev1.Toleration) bool {
			t.TolerationSeconds = old.TolerationSeconds
			return t == old
		}) {
			return field.ErrorList{field.Forbidden(specPath.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}
