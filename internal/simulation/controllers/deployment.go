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

// Deployments simulates the controller of Deployments. It makes no ReplicaSets: a Deployment controls its pods.
func Deployments(ctx context.Context, c client.Client) error {
	var all appsv1.DeploymentList
	return stepEach(ctx, c, &all, &all.Items, "roll out", "Deployment", stepDeployment)
}

// stepDeployment starts the pods of the current template. Then it deletes all others, and creates those that are missing.
func stepDeployment(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	hash := hashOf(&d.Spec.Template)
	pods, err := podsOf(ctx, c, d)
	if err != nil {
		return err
	}
	current, ready, stale := 0, 0, []*corev1.Pod(nil)
	for _, pod := range pods {
		if pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != hash || isFinished(pod) || current >= replicas(d) {
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
	for ; current < replicas(d); current++ {
		pod := podOf(d, appsv1.SchemeGroupVersion.WithKind("Deployment"), &d.Spec.Template, map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash})
		pod.GenerateName = d.Name + "-"
		if err := c.Create(ctx, pod); err != nil {
			return err
		}
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
