package controller

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
)

// networkPolicy returns the NetworkPolicy of a Cache. The pods of its namespace reach the server, and all pods its metrics.
func networkPolicy(c *storev1alpha1.Cache) *networkingv1.NetworkPolicy {
	return ownedresources.NewNetworkPolicy(c, nil,
		networkingv1.NetworkPolicyIngressRule{
			From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}},
			Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString(serverPort))}},
		},
		networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString(metricsPort))}}})
}
