package ownedresources

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewDeployment gives a Deployment named like its owner, to be edited like any struct.
//
// The selector, which can never be changed, and the pods' labels are selector, or
// app.kubernetes.io/{name,instance} if that is nil. Metadata, but not the pods, carries the
// recommended labels, so that a change of those rolls nothing. Replicas are unset: no opinion.
//
// Pods and containers meet the Pod Security Standard "restricted"
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/) where they say nothing
// themselves. An image whose user is no number also needs RunAsUser. Set both SecurityContexts
// to nil afterwards to do without.
func NewDeployment(owner client.Object, selector map[string]string, containers ...corev1.Container) *appsv1.Deployment {
	if selector == nil {
		selector = defaultSelector(owner)
	}
	containers = slices.Clone(containers) // what they point to may be the owner's spec
	for i := range containers {
		containers[i].SecurityContext = restricted(containers[i].SecurityContext)
	}
	return &appsv1.Deployment{
		ObjectMeta: metadata(owner),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(selector)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(selector)},
				Spec: corev1.PodSpec{
					Containers: containers,
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot:   new(true),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
				},
			},
		},
	}
}

// restricted fills in what a container has to say itself.
func restricted(given *corev1.SecurityContext) *corev1.SecurityContext {
	c := given.DeepCopy()
	if c == nil {
		c = &corev1.SecurityContext{}
	}
	if c.AllowPrivilegeEscalation == nil {
		c.AllowPrivilegeEscalation = new(false)
	}
	if c.Capabilities == nil {
		c.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return c
}
