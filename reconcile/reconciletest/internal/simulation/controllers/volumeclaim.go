package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// protection is the finalizer that keeps a claim while a pod uses it. In a cluster an admission plug-in adds it.
const protection = "kubernetes.io/pvc-protection"

// PersistentVolumeClaims simulates the controllers that provide volumes for claims, resize claims, and keep claims that a pod uses. It
// creates no PersistentVolumes.
func PersistentVolumeClaims(ctx context.Context, c client.Client) error {
	var all corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &all); err != nil {
		return fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	for i := range all.Items {
		claim := &all.Items[i]
		if err := stepClaim(ctx, c, claim); err != nil {
			return fmt.Errorf("bind PersistentVolumeClaim %s: %w", client.ObjectKeyFromObject(claim), err)
		}
	}
	return nil
}

func stepClaim(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
	request, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	switch {
	case claim.DeletionTimestamp != nil:
		return release(ctx, c, claim)
	case claim.Status.Phase == "" || claim.Status.Phase == corev1.ClaimPending:
		return bind(ctx, c, claim)
	case claim.Status.Phase == corev1.ClaimBound && request.Cmp(capacity) > 0:
		return expand(ctx, c, claim)
	}
	return nil
}

// release removes the finalizer of a claim that is being deleted, when no pod uses it any more.
func release(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
	i := slices.Index(claim.Finalizers, protection)
	if i < 0 {
		return nil
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(claim.Namespace)); err != nil {
		return err
	}
	for j := range pods.Items {
		if pod := &pods.Items[j]; !isFinished(pod) && uses(pod, claim.Name) {
			return nil
		}
	}
	claim.Finalizers = slices.Delete(claim.Finalizers, i, i+1)
	return client.IgnoreNotFound(c.Update(ctx, claim))
}

func uses(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// bind provides a volume of the size that the claim asks for.
func bind(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = "pvc-" + string(claim.UID)
		for _, key := range []string{"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"} {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, key, "yes")
		}
		if err := c.Update(ctx, claim); err != nil {
			return err
		}
	}
	claim.Status.Phase, claim.Status.AccessModes = corev1.ClaimBound, claim.Spec.AccessModes
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]}
	return c.Status().Update(ctx, claim)
}

// expand resizes a volume in two steps: first it is being resized, and then it has the new size. A volume never shrinks.
func expand(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
	s := &claim.Status
	resizing := func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimResizing
	}
	requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if s.Capacity == nil {
		s.Capacity = corev1.ResourceList{}
	}
	if allocated := s.AllocatedResources[corev1.ResourceStorage]; slices.ContainsFunc(s.Conditions, resizing) && allocated.Equal(requested) {
		s.Capacity[corev1.ResourceStorage] = requested
		s.Conditions = slices.DeleteFunc(s.Conditions, resizing)
		s.AllocatedResourceStatuses = nil
		return c.Status().Update(ctx, claim)
	}
	s.Conditions = append(slices.DeleteFunc(s.Conditions, resizing), corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	})
	s.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: requested}
	s.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInProgress}
	return c.Status().Update(ctx, claim)
}
