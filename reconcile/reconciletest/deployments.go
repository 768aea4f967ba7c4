package reconciletest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deployments is the [SimulatedController] of Deployments. It creates pods from their templates, makes the pods ready at its
// next step, and writes the status of the Deployment. There are no ReplicaSets: a Deployment owns its pods. Pods that are
// replaced are deleted at once, without a grace period.
func Deployments(ctx context.Context, c client.Client) error {
	var all appsv1.DeploymentList
	if err := c.List(ctx, &all); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for i := range all.Items {
		if d := &all.Items[i]; d.DeletionTimestamp == nil {
			if err := rollOut(ctx, c, d); err != nil {
				return fmt.Errorf("roll out Deployment %s: %w", client.ObjectKeyFromObject(d), err)
			}
		}
	}
	return nil
}

func rollOut(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	hash := templateHash(d)
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(d.Namespace)); err != nil {
		return err
	}
	current, ready, stale := 0, 0, []*corev1.Pod(nil)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !metav1.IsControlledBy(pod, d) || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != hash || current >= replicas(d) {
			stale = append(stale, pod)
			continue
		}
		current++
		if isReady(pod) {
			ready++
			continue
		}
		if err := becomeReady(ctx, c, pod); err != nil {
			return err
		}
	}
	for _, pod := range stale {
		if err := c.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for ; current < replicas(d); current++ {
		if err := c.Create(ctx, podOf(d, hash)); err != nil {
			return err
		}
	}
	return updateStatus(ctx, c, d, current, ready)
}

func replicas(d *appsv1.Deployment) int {
	if d.Spec.Replicas == nil {
		return 1
	}
	return int(*d.Spec.Replicas)
}

func templateHash(d *appsv1.Deployment) string {
	template, err := json.Marshal(d.Spec.Template)
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(template)
	return hex.EncodeToString(sum[:4])
}

func podOf(d *appsv1.Deployment, hash string) *corev1.Pod {
	labels := maps.Clone(d.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, GenerateName: d.Name + "-", Labels: labels, Annotations: d.Spec.Template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: d.Spec.Template.Spec,
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func becomeReady(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	})
	return c.Status().Update(ctx, pod)
}

func updateStatus(ctx context.Context, c client.Client, d *appsv1.Deployment, current, ready int) error {
	available, progressing := corev1.ConditionTrue, "NewReplicaSetAvailable"
	if ready < replicas(d) {
		available, progressing = corev1.ConditionFalse, "ReplicaSetUpdated"
	}
	conditions := slices.Clone(d.Status.Conditions)
	set := func(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason string) {
		for i := range conditions {
			if is := &conditions[i]; is.Type == t {
				if is.Status != status {
					is.LastTransitionTime = metav1.Now()
				}
				if is.Status != status || is.Reason != reason {
					is.LastUpdateTime = metav1.Now()
				}
				is.Status, is.Reason = status, reason
				return
			}
		}
		conditions = append(conditions, appsv1.DeploymentCondition{
			Type: t, Status: status, Reason: reason, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	set(appsv1.DeploymentAvailable, available, "MinimumReplicas"+map[bool]string{true: "Available", false: "Unavailable"}[available == corev1.ConditionTrue])
	set(appsv1.DeploymentProgressing, corev1.ConditionTrue, progressing)
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: int32(current), UpdatedReplicas: int32(current),
		ReadyReplicas: int32(ready), AvailableReplicas: int32(ready), UnavailableReplicas: int32(replicas(d) - ready),
		Conditions: conditions,
	}
	if equality.Semantic.DeepEqual(status, d.Status) {
		return nil
	}
	d.Status = status
	return c.Status().Update(ctx, d)
}
