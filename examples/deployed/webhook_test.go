//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestWithWebhook applies an overlay with webhooks. The API server accepts it and creates the pods, and its parts fit together: what
// cert-manager writes is what the pods mount, and the Service has the name for which the certificate is.
func TestWithWebhook(t *testing.T) {
	n := newNode(t)
	d := n.deploy(t, "eru", "with-webhook", "", "", func(string) {})
	t.Cleanup(func() {
		for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
			for _, obj := range d.find(kind) {
				assert.NoError(t, n.Delete(context.Background(), obj))
			}
		}
	})
	service := d.named(t, "Service", "eru-webhook-service")
	certificate := d.named(t, "Certificate", "eru-webhook-server")
	assert.Equal(t, []any{service.GetName() + "." + service.GetNamespace() + ".svc"}, nested(certificate, "spec", "dnsNames"))
	issuer := d.named(t, "Issuer", nested(certificate, "spec", "issuerRef", "name").(string))
	authority := d.named(t, "Certificate", "eru-webhook-authority")
	assert.Equal(t, nested(authority, "spec", "secretName"), nested(issuer, "spec", "ca", "secretName"))
	d.named(t, "Issuer", nested(authority, "spec", "issuerRef", "name").(string))

	pod := d.pods[0]
	container := pod.Spec.Containers[0]
	require.NotEmpty(t, pod.Spec.Volumes)
	assert.Equal(t, nested(certificate, "spec", "secretName"), pod.Spec.Volumes[0].Secret.SecretName)
	require.NotEmpty(t, container.VolumeMounts)
	assert.Equal(t, pod.Spec.Volumes[0].Name, container.VolumeMounts[0].Name)
	assert.Contains(t, container.Args, "--webhook-cert-dir="+container.VolumeMounts[0].MountPath)
	assert.Subset(t, pod.Labels, nested(service, "spec", "selector"))
	policy := &networkingv1.NetworkPolicy{}
	fromUnstructured(t, d.named(t, "NetworkPolicy", "eru-allow-webhook-traffic"), policy)
	assert.Equal(t, d.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels)
	assert.Empty(t, policy.Spec.Ingress[0].From, "the API server is often outside of the pod network")
	assert.Equal(t, "webhook", policy.Spec.Ingress[0].Ports[0].Port.StrVal)

	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	fromUnstructured(t, d.named(t, "ValidatingWebhookConfiguration", "eru-validating-webhook-configuration"), &validating)
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	fromUnstructured(t, d.named(t, "MutatingWebhookConfiguration", "eru-mutating-webhook-configuration"), &mutating)
	require.Len(t, validating.Webhooks, 1)
	require.Len(t, mutating.Webhooks, 1)
	for _, injected := range []map[string]string{validating.Annotations, mutating.Annotations} {
		assert.Equal(t, certificate.GetNamespace()+"/"+certificate.GetName(), injected["cert-manager.io/inject-ca-from"])
	}
	for _, called := range []*admissionregistrationv1.ServiceReference{validating.Webhooks[0].ClientConfig.Service, mutating.Webhooks[0].ClientConfig.Service} {
		assert.Equal(t, service.GetName(), called.Name)
		assert.Equal(t, service.GetNamespace(), called.Namespace)
	}
	for _, conditions := range [][]admissionregistrationv1.MatchCondition{validating.Webhooks[0].MatchConditions, mutating.Webhooks[0].MatchConditions} {
		require.Len(t, conditions, 1)
		own := "system:serviceaccount:" + d.Namespace + ":" + d.Spec.Template.Spec.ServiceAccountName
		assert.Contains(t, conditions[0].Expression, `"`+own+`"`, "a webhook that is down must not stop its own operator")
	}
	assert.NotContains(t, strings.Join(validating.Webhooks[0].Rules[0].Resources, " "), "/", "nobody validates the status")
}

// named returns the object of a kind and a name.
func (d *deployment) named(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, obj := range d.find(kind) {
		if obj.GetName() == name {
			return obj
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// nested returns the value of a field, or nil.
func nested(obj *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	return value
}

func fromUnstructured(t *testing.T, obj *unstructured.Unstructured, into any) {
	t.Helper()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into))
}
