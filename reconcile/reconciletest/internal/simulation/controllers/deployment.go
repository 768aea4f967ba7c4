package controllers

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deployments simulates the controllers of Deployments and of their ReplicaSets. It deletes the ReplicaSets of earlier templates, as the
// real controller does with revisionHistoryLimit 0.
func Deployments(ctx context.Context, c client.Client) error {
	var all appsv1.DeploymentList
	return stepEach(ctx, c, &all, &all.Items, "roll out", "Deployment", stepDeployment)
}

// stepDeployment starts the pending pods of the current template's ReplicaSet, and creates the missing ones. It deletes all other pods and
// ReplicaSets of the Deployment.
func stepDeployment(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	set, earlier, err := replicaSetsOf(ctx, c, d)
	if err != nil || set == nil {
		return err
	}
	pods, err := podsOf(ctx, c, append(earlier, set)...)
	if err != nil {
		return err
	}
	current, ready, stale := 0, 0, []*corev1.Pod(nil)
	for _, pod := range pods {
		if !metav1.IsControlledBy(pod, set) || isFinished(pod) || current >= replicas(d) {
			stale = append(stale, pod)
			continue
		}
		current++
		if isReady(pod) {
			ready++
		} else if isPending(pod) {
			if err := start(ctx, c, pod); err != nil {
				return err
			}
		}
	}
	for _, pod := range stale {
		if err := deletePod(ctx, c, pod); err != nil {
			return err
		}
	}
	for _, of := range earlier {
		if err := client.IgnoreNotFound(c.Delete(ctx, of)); err != nil {
			return err
		}
	}
	for ; current < replicas(d); current++ {
		pod := podOf(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &set.Spec.Template, nil)
		pod.GenerateName = d.Name + "-"
		if err := c.Create(ctx, pod); err != nil {
			return err
		}
	}
	if err := updateReplicaSetStatus(ctx, c, set, current, ready); err != nil {
		return err
	}
	return updateDeploymentStatus(ctx, c, d, current, ready)
}

func replicas(d *appsv1.Deployment) int {
	if d.Spec.Replicas == nil {
		return 1
	}
	return int(*d.Spec.Replicas)
}

func updateDeploymentStatus(ctx context.Context, c client.Client, d *appsv1.Deployment, current, ready int) error {
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
