//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// prepareConversion creates the Secret that cert-manager would create.
func prepareConversion(t *testing.T, n *node, namespace string) {
	t.Helper()
	name := types.NamespacedName{Namespace: namespace, Name: "webhook-server-tls"}
	secret := reconciletest.TLSSecret(name, 100*365*24*time.Hour, "memcached-webhook-service."+namespace+".svc")
	require.NoError(t, n.Create(t.Context(), secret))
	t.Cleanup(func() { assert.NoError(t, n.Delete(context.Background(), secret)) })
}

// testConversion checks the names by which the objects of the conversion find each other: kustomize does not know all of them.
func testConversion(t *testing.T, d *deployment) {
	t.Helper()
	crd := d.find("CustomResourceDefinition")[0]
	service, _, err := unstructured.NestedStringMap(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	require.NoError(t, err)
	assert.Contains(t, d.keys("Service"), service["namespace"]+"/"+service["name"], "the API server calls it")
	assert.Equal(t, "/convert", service["path"], "where controller-runtime serves it")
	assert.Contains(t, d.keys("Certificate"), crd.GetAnnotations()["cert-manager.io/inject-ca-from"], "cert-manager reads the authority from it")

	served := false
	for _, certificate := range d.find("Certificate") {
		issuer, _, _ := unstructured.NestedString(certificate.Object, "spec", "issuerRef", "name")
		assert.Contains(t, d.keys("Issuer"), d.Namespace+"/"+issuer, "the issuer of %s", certificate.GetName())
		if names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames"); len(names) > 0 {
			served = true
			assert.Equal(t, []string{service["name"] + "." + service["namespace"] + ".svc"}, names)
			secret, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
			assert.Equal(t, secret, d.Spec.Template.Spec.Volumes[0].Secret.SecretName, "the pods mount it")
		}
	}
	assert.True(t, served, "no certificate is for the Service")
}

// keys returns the namespaces and names of the objects of a kind.
func (d *deployment) keys(kind string) (names []string) {
	for _, obj := range d.find(kind) {
		names = append(names, obj.GetNamespace()+"/"+obj.GetName())
	}
	return names
}
