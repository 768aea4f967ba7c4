package ownedresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestContainerPorts(t *testing.T) {
	tests := map[string]struct {
		reason string
		ports  []corev1.ServicePort
		want   []corev1.ContainerPort
	}{
		"Number": {
			reason: "the container listens on the target",
			ports:  []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}},
			want:   []corev1.ContainerPort{{ContainerPort: 80}},
		},
		"Name": {
			reason: "the name of a target is looked up among the container's ports",
			ports:  []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromString("http")}},
			want:   []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		},
		"Unset": {
			reason: "the API server sets the target to the Service's port",
			ports:  []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}},
			want:   []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		},
		"TwoWithOneTarget": {
			reason: "server-side apply refuses a container port that occurs twice; an unset protocol is TCP",
			ports: []corev1.ServicePort{
				{Port: 80, TargetPort: intstr.FromInt32(8080)}, {Port: 443, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP},
			},
			want: []corev1.ContainerPort{{ContainerPort: 8080}},
		},
		"TwoWithOneName": {
			reason: "the API server refuses a name that occurs twice",
			ports:  []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}, {Port: 8080, TargetPort: intstr.FromString("http")}},
			want:   []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
		},
		"BothProtocols": {
			reason: "the same number with another protocol is another port",
			ports:  []corev1.ServicePort{{Port: 53}, {Port: 53, Protocol: corev1.ProtocolUDP}},
			want:   []corev1.ContainerPort{{ContainerPort: 53}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ContainerPorts(tc.ports...)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNewIngress(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	port := networkingv1.ServiceBackendPort{Name: "http"}
	rule := func(host, service string) networkingv1.IngressRule {
		return networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: service, Port: port},
			}}},
		}}}
	}
	tests := map[string]struct {
		reason  string
		backend networkingv1.IngressServiceBackend
		hosts   []string
		want    []networkingv1.IngressRule
	}{
		"Hosts": {
			reason:  "each host has a rule, and an unnamed backend is the owner's Service",
			backend: networkingv1.IngressServiceBackend{Port: port},
			hosts:   []string{"shop.example.com", "www.example.com"},
			want:    []networkingv1.IngressRule{rule("shop.example.com", "web"), rule("www.example.com", "web")},
		},
		"NoHosts": {
			reason:  "a rule without a host is for all hosts",
			backend: networkingv1.IngressServiceBackend{Name: "shop", Port: port},
			want:    []networkingv1.IngressRule{rule("", "shop")},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := NewIngress(owner, tc.backend, tc.hosts...)
			if diff := cmp.Diff(tc.want, got.Spec.Rules); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			got.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "other"
			for i, rule := range got.Spec.Rules[1:] {
				require.Equal(t, tc.want[i+1], rule, "the rules share nothing")
			}
		})
	}
}

// TestNewNetworkPolicyEgress proves that egress is limited while the policy has egress rules, and is not limited
// otherwise.
func TestNewNetworkPolicyEgress(t *testing.T) {
	env := newServerEnv(t)
	const ingress, egress = networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	for _, tc := range []struct {
		reason  string
		limited bool
		want    []networkingv1.PolicyType
	}{
		{"limited from the creation on", true, []networkingv1.PolicyType{ingress, egress}},
		{"not limited any more: with Egress the pods could connect to nothing", false, []networkingv1.PolicyType{ingress}},
		{"limited again: without Egress the rules would be ignored", true, []networkingv1.PolicyType{ingress, egress}},
		{"not limited again", false, []networkingv1.PolicyType{ingress}},
	} {
		policy := NewNetworkPolicy(env.Owner, nil)
		if tc.limited {
			policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
			policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, egress)
		}
		_, err := env.Apply(t, policy)
		require.NoError(t, err)
		var live networkingv1.NetworkPolicy
		env.Live(t, &live)
		require.Equal(t, tc.want, live.Spec.PolicyTypes, tc.reason)
		require.Equal(t, tc.limited, len(live.Spec.Egress) > 0, tc.reason)
	}
}
