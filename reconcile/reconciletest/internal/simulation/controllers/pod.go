package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podOf returns a pod of the template that the owner controls, with further labels. It has no name.
func podOf(owner client.Object, kind schema.GroupVersionKind, template *corev1.PodTemplateSpec, labels map[string]string) *corev1.Pod {
	template = template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Labels: map[string]string{}, Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: template.Spec,
	}
	maps.Copy(pod.Labels, template.Labels)
	maps.Copy(pod.Labels, labels)
	return pod
}

// podsOf returns the pods that one of the owners controls, and that are not being deleted, by name. The owners are in one namespace.
func podsOf[O client.Object](ctx context.Context, c client.Client, owners ...O) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(owners[0].GetNamespace())); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(owners, func(owner O) bool { return metav1.IsControlledBy(pod, owner) }) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// deletePod deletes a pod at once. It returns nil if the pod does not exist.
func deletePod(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return client.IgnoreNotFound(c.Delete(ctx, pod, client.GracePeriodSeconds(0)))
}

// isPending reports whether the kubelet has not started a pod yet. After the start the simulated kubelet does not write the status again,
// so a scenario may change it.
func isPending(pod *corev1.Pod) bool {
	return (pod.Status.Phase == "" || pod.Status.Phase == corev1.PodPending) && len(pod.Status.ContainerStatuses) == 0
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isUnpullable reports whether an image cannot be pulled: names below .invalid never resolve (RFC 2606).
func isUnpullable(image string) bool {
	host, _, found := strings.Cut(image, "/")
	return found && strings.HasSuffix(host, ".invalid")
}

// start does what the kubelet does to a pending pod. The pod becomes ready, unless one of its images cannot be pulled.
func start(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	pulled := true
	for _, container := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image}
		if isUnpullable(container.Image) {
			pulled = false
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", container.Image)}
		} else {
			status.Ready, status.Started, status.State.Running = true, new(true), &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	if pulled {
		pod.Status.Phase = corev1.PodRunning
		setReady(pod, corev1.ConditionTrue, "")
	} else {
		pod.Status.Phase = corev1.PodPending
		setReady(pod, corev1.ConditionFalse, "ContainersNotReady")
	}
	pod.Status.StartTime = new(metav1.Now())
	return c.Status().Update(ctx, pod)
}

// finish ends a pod: it has succeeded or failed.
func finish(ctx context.Context, c client.Client, pod *corev1.Pod, succeeded bool) error {
	end := corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: metav1.Now(), FinishedAt: metav1.Now()}
	pod.Status.Phase = corev1.PodSucceeded
	if !succeeded {
		pod.Status.Phase, end.Reason, end.ExitCode = corev1.PodFailed, "Error", 1
	}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Started: new(false), State: corev1.ContainerState{Terminated: &end},
		})
	}
	setReady(pod, corev1.ConditionFalse, "PodCompleted")
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = new(metav1.Now())
	}
	return c.Status().Update(ctx, pod)
}

// setReady sets the conditions ContainersReady and Ready.
func setReady(pod *corev1.Pod, status corev1.ConditionStatus, reason string) {
	for _, of := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		condition := corev1.PodCondition{Type: of, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}
		if i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of }); i >= 0 {
			pod.Status.Conditions[i] = condition
		} else {
			pod.Status.Conditions = append(pod.Status.Conditions, condition)
		}
	}
}

// hashOf returns a short hash of a pod template.
func hashOf(template *corev1.PodTemplateSpec) string {
	content, err := json.Marshal(template)
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:4])
}
