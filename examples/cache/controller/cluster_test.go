package controller_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The controllers in this file replace default ones of package reconciletest, which an operator of your own can use as they are. The
// default one of StatefulSets deletes claims as the retention policy says. So when a fault deletes the StatefulSet by another writer, the
// claims go, as they would in a cluster: a rightful difference, which this exploration would have to leave out together with wrong ones.

// statefulSets is a simulated controller of StatefulSets. It also binds claims, and lets their volumes grow.
func statefulSets(ctx context.Context, c client.Client) error {
	var all appsv1.StatefulSetList
	if err := c.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		if set := &all.Items[i]; set.DeletionTimestamp == nil {
			if err := rollOut(ctx, c, set); err != nil {
				return fmt.Errorf("roll out StatefulSet %s: %w", set.Name, err)
			}
		}
	}
	return bindClaims(ctx, c)
}

func rollOut(ctx context.Context, c client.Client, set *appsv1.StatefulSet) error {
	for i := range *set.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprint(set.Name, "-", i)}}
		claim := set.Spec.VolumeClaimTemplates[0].DeepCopy()
		claim.Namespace, claim.Name, claim.Labels = set.Namespace, claim.Name+"-"+pod.Name, set.Spec.Selector.MatchLabels
		err := c.Get(ctx, client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{})
		if apierrors.IsNotFound(err) { // a creation that fails takes longer, and explorations come here thousands of times
			err = c.Create(ctx, claim)
		}
		if err != nil {
			return err
		}
		if err := ensurePod(ctx, c, set, pod); err != nil {
			return err
		}
	}
	n := *set.Spec.Replicas
	surplus := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprint(set.Name, "-", n)}}
	if err := c.Delete(ctx, surplus); client.IgnoreNotFound(err) != nil {
		return err
	}
	status := appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, CurrentReplicas: n, UpdatedReplicas: n, AvailableReplicas: n}
	if set.Status.ObservedGeneration == status.ObservedGeneration && set.Status.Replicas == n {
		return nil
	}
	set.Status = status
	return c.Status().Update(ctx, set)
}

// ensurePod creates a pod, replaces one of another template, or adopts one that has no controller.
func ensurePod(ctx context.Context, c client.Client, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	template, reference := &set.Spec.Template, *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	switch {
	case apierrors.IsNotFound(err):
		pod.Labels, pod.Annotations, pod.Spec = template.Labels, template.Annotations, template.Spec
		pod.OwnerReferences = []metav1.OwnerReference{reference}
		pod.Spec.Volumes = append(slices.Clone(pod.Spec.Volumes), corev1.Volume{Name: "cache-data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "cache-data-" + pod.Name},
		}})
		return c.Create(ctx, pod)
	case err != nil:
		return err
	case !maps.Equal(pod.Annotations, template.Annotations):
		return c.Delete(ctx, pod)
	case len(pod.OwnerReferences) == 0:
		pod.OwnerReferences = []metav1.OwnerReference{reference}
		return c.Update(ctx, pod)
	case len(pod.Status.Conditions) == 0:
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return c.Status().Update(ctx, pod)
	}
	return nil
}

func bindClaims(ctx context.Context, c client.Client) error {
	var claims corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &claims); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.DeletionTimestamp != nil { // no pod uses it any more
			claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(name string) bool { return name == "kubernetes.io/pvc-protection" })
			if err := c.Update(ctx, claim); err != nil {
				return err
			}
			continue
		}
		if !claim.Spec.Resources.Requests.Storage().Equal(*claim.Status.Capacity.Storage()) {
			claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
			if err := c.Status().Update(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// jobs is a simulated controller of Jobs, which succeed at once when they are not suspended.
func jobs(ctx context.Context, c client.Client) error {
	var all batchv1.JobList
	if err := c.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		job := &all.Items[i]
		if job.DeletionTimestamp != nil || len(job.Status.Conditions) > 0 || job.Spec.Suspend != nil && *job.Spec.Suspend {
			continue
		}
		job.Status.StartTime, job.Status.CompletionTime = new(metav1.Now()), new(metav1.Now())
		job.Status.Succeeded = 1
		for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue})
		}
		if err := c.Status().Update(ctx, job); err != nil {
			return err
		}
	}
	return nil
}
