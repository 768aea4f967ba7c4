package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimOf returns the claim of a template for the pod with the ordinal.
func (s *statefulSet) claimOf(template *corev1.PersistentVolumeClaim, ordinal int) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Namespace, claim.Name = s.obj.Namespace, fmt.Sprintf("%s-%s-%d", template.Name, s.obj.Name, ordinal)
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, s.obj.Spec.Selector.MatchLabels)
	return claim
}

// deletesClaims reports whether the claims are deleted with the StatefulSet.
func (s *statefulSet) deletesClaims() bool {
	policy := s.obj.Spec.PersistentVolumeClaimRetentionPolicy
	return policy != nil && policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// setClaimOwners sets the owners of the claims of all replicas. If the claims are to be deleted with the StatefulSet, the StatefulSet
// becomes an owner. A pod is removed from the owners: its claim was to be deleted with it, and now belongs to a replica again.
func (s *statefulSet) setClaimOwners(ctx context.Context) error {
	if len(s.obj.Spec.VolumeClaimTemplates) == 0 || s.obj.Spec.PersistentVolumeClaimRetentionPolicy == nil {
		return nil
	}
	var owners []metav1.OwnerReference
	if s.deletesClaims() {
		owners = append(owners, *metav1.NewControllerRef(s.obj, statefulSetKind))
	}
	for ordinal := s.first(); ordinal < s.end(); ordinal++ {
		if s.pods[ordinal] == nil {
			continue
		}
		if err := s.setClaimOwner(ctx, ordinal, owners...); err != nil {
			return err
		}
	}
	return nil
}

// setClaimOwner sets the owners of the claims of one pod. It removes the owner references to the StatefulSet and the pod, including earlier
// objects of these names, and adds the given owners. Other owners stay.
func (s *statefulSet) setClaimOwner(ctx context.Context, ordinal int, owners ...metav1.OwnerReference) error {
	for i := range s.obj.Spec.VolumeClaimTemplates {
		claim := &corev1.PersistentVolumeClaim{}
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(s.claimOf(&s.obj.Spec.VolumeClaimTemplates[i], ordinal)), claim); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return err
		}
		wanted := slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(r metav1.OwnerReference) bool {
			return r.Kind == statefulSetKind.Kind && r.Name == s.obj.Name || r.Kind == "Pod" && r.Name == fmt.Sprintf("%s-%d", s.obj.Name, ordinal)
		})
		wanted = append(wanted, owners...)
		if equality.Semantic.DeepEqual(wanted, claim.OwnerReferences) {
			continue
		}
		claim.OwnerReferences = wanted
		if err := s.client.Update(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}
