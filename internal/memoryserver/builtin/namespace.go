package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
)

var namespaceKind = description{
	prototype: &corev1.Namespace{}, resource: "namespaces", clusterScoped: true, hasStatus: true,
	behaviour: behaviour{
		validateName: validation.NameIsDNSLabel,
		setDefaults: forObject(func(n *corev1.Namespace) {
			if n.Name != "" {
				setNameLabel(n)
			}
			setIfZero(&n.Status.Phase, corev1.NamespaceActive)
		}),
		prepareForCreate: forObject(func(n *corev1.Namespace) {
			setNameLabel(n)
			n.Status.Phase = corev1.NamespaceActive
			if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
				n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		}),
		holdDeletion:     forObject(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }),
		prepareForUpdate: forUpdate(func(obj, live *corev1.Namespace) { obj.Spec.Finalizers = live.Spec.Finalizers }),
	},
}

func setNameLabel(n *corev1.Namespace) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}
