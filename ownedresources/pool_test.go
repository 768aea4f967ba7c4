package ownedresources_test

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// newPool returns an owner. Its minAvailable is what the scenario changes.
func newPool(n int32) *pool {
	return &pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(n))}}
}

func migration(owner *pool, ttl *int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Labels: map[string]string{"app": owner.Name}}, // a StatefulSet without labels gets the labels of its pods
		Spec: batchv1.JobSpec{
			TTLSecondsAfterFinished: ttl,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "migrate", Image: "migrate:" + owner.Spec.MinAvailable.String()}},
			}},
		},
	}
}

// pool owns the children of the scenario. Its minAvailable is the number of shards.
type pool = policyv1.PodDisruptionBudget

func statefulSet(owner *pool) *appsv1.StatefulSet {
	labels := map[string]string{"app": owner.Name}
	size := resource.MustParse(owner.Spec.MinAvailable.String() + "Gi")
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server:1"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
				},
			}},
		},
	}
}
