package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CheckStart returns why pods of a workload do not start, or the zero Blocker if no cause is known. The reason is a reason of Kubernetes
// itself, such as ImagePullBackOff, CrashLoopBackOff, Unschedulable or FailedCreate. While the cause stays the same, the message does too:
// it has no names of pods, no times and no numbers of nodes. So a status that contains it is not written again and again.
//
// pods are the pods of the workload, in any order: select them by its labels. CheckStart reads only the name, the deletionTimestamp and the
// status of a pod. Pods that are ready, are being deleted or have ended are ignored.
//
// It returns the first cause that it finds:
//
//   - A pod is not scheduled. Reason is the reason of the pod's condition PodScheduled, such as Unschedulable, and
//     Message has what the scheduler found missing.
//   - A container or an init container waits, with another reason than ContainerCreating or PodInitializing. Reason is the container's
//     reason, such as ErrImagePull, ImagePullBackOff, CreateContainerConfigError or CrashLoopBackOff. Message has the container, the image,
//     and how the container ended before.
//   - A Deployment creates no pods, as its condition ReplicaFailure or Progressing says. Reason is the reason of the condition:
//     FailedCreate if a quota or an admission plug-in refuses the pods, or ProgressDeadlineExceeded. For a StatefulSet or a DaemonSet, only
//     events report this. CheckStart does not read such a workload, so workload may be nil.
//
// If several pods do not start, the cause of the first pod by name is returned, so that the result does not alternate. A container that
// crashes waits only between its restarts, so the reason CrashLoopBackOff comes and goes.
func CheckStart(workload client.Object, pods []corev1.Pod) Blocker {
	first, name := Blocker{}, ""
	for i := range pods {
		pod := &pods[i]
		if name != "" && pod.Name >= name {
			continue
		}
		if blocker := checkPod(pod); blocker.Reason != "" {
			first, name = blocker, pod.Name
		}
	}
	if first.Reason != "" {
		return first
	}
	if d, ok := workload.(*appsv1.Deployment); ok && d != nil {
		return checkDeployment(d)
	}
	return Blocker{}
}

func checkPod(pod *corev1.Pod) Blocker {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return Blocker{}
	}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return Blocker{}
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "":
			return Blocker{c.Reason, "a pod is not scheduled: " + withoutNodes(c.Message)}
		}
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			c := &containers[i]
			if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return Blocker{w.Reason, fmt.Sprintf("container %s with image %s waits: %s%s", c.Name, c.Image, w.Reason, lastEnd(c))}
			}
		}
	}
	return Blocker{}
}

// lastEnd returns how the last run of a container ended. It does not use the message of the kubelet, which contains the
// pod's name and a number of seconds.
func lastEnd(c *corev1.ContainerStatus) string {
	last := c.LastTerminationState.Terminated
	if last == nil {
		return ""
	}
	return fmt.Sprintf(" after exit code %d (%s)", last.ExitCode, cmp.Or(last.Reason, "Unknown"))
}

// withoutNodes returns the causes in a message of the scheduler, such as
//
//	0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: 0/3 nodes are available: …
//
// without the numbers of nodes, which change as nodes come and go. In the message the causes are sorted by these numbers, so
// withoutNodes sorts them again, by their text. Any other message is returned unchanged.
func withoutNodes(message string) string {
	_, found, ok := strings.Cut(message, " nodes are available: ")
	if !ok {
		return message
	}
	found, _, _ = strings.Cut(found, ". ")
	causes := strings.Split(strings.TrimSuffix(found, "."), ", ")
	for i, cause := range causes {
		if count, what, ok := strings.Cut(cause, " "); ok && strings.TrimFunc(count, unicode.IsDigit) == "" {
			causes[i] = what
		}
	}
	slices.Sort(causes)
	return strings.Join(slices.Compact(causes), ", ")
}

func checkDeployment(d *appsv1.Deployment) Blocker {
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			return Blocker{c.Reason, "new pods: " + withoutPodName(c.Message)}
		}
	}
	return Blocker{}
}

// withoutPodName returns a message such as
//
//	pods "web-5d8c-x7f2q" is forbidden: exceeded quota: small
//
// without the name of the pod. The pod was never created, and its name differs at each attempt.
func withoutPodName(message string) string {
	for _, resource := range []string{`pods "`, `Pod "`} { // a refusal by an admission plug-in, and a refusal by validation
		if named, ok := strings.CutPrefix(message, resource); ok {
			if _, why, ok := strings.Cut(named, `" is `); ok {
				return why
			}
		}
	}
	return message
}
