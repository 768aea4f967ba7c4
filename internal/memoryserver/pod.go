package memoryserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var podKind = builtInKind{
	like: &corev1.Pod{}, resource: "pods", status: true, counted: true,
	behaviour: behaviour{
		defaults: on(defaultPod),
		create: on(func(pod *corev1.Pod) {
			admitPod(pod)
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qualityOfService(pod)}
		}),
		update: onBoth(func(made, _ *corev1.Pod) { tolerateOutage(made) }),
		status: onBoth(func(made, live *corev1.Pod) {
			made.DeletionTimestamp, made.OwnerReferences = nil, live.OwnerReferences
			unset(&made.Status.QOSClass, live.Status.QOSClass)
		}),
		grace:   podGrace,
		check:   checked(func(pod *corev1.Pod) field.ErrorList { return checkPodSpec(&pod.Spec, specPath) }),
		compare: compared(comparePods),
	},
}

// podGrace is how long a kubelet has to stop the pod. One that runs nowhere goes at once.
func podGrace(live client.Object, requested *int64) int64 {
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

// comparePods lets only a few fields change. Where the server says which, it prints a difference
// that is left out here.
func comparePods(made, live *corev1.Pod) field.ErrorList {
	rest := made.Spec.DeepCopy()
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
	errs := compareTolerations(made.Spec.Tolerations, live.Spec.Tolerations)
	if equality.Semantic.DeepEqual(*rest, live.Spec) {
		return errs
	}
	return append(errs, field.Forbidden(specPath, "pod updates may not change fields other than `spec.containers[*].image`,"+
		"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
		"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
}

func compareTolerations(made, live []corev1.Toleration) field.ErrorList {
	for _, old := range live {
		if !slices.ContainsFunc(made, func(t corev1.Toleration) bool {
			t.TolerationSeconds = old.TolerationSeconds
			return t == old
		}) {
			return field.ErrorList{field.Forbidden(specPath.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}
