package controlplane_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestWebhooks shows what the API server does with the webhooks of a manager on this machine. Its parts depend on each other: the CRD and
// the configurations exist only once in the control plane.
func TestWebhooks(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	c, err := client.New(cp.Config(), client.Options{Scheme: gadgetScheme()})
	require.NoError(t, err)
	hooks, err := cp.InstallWebhooks(t.Context(), controlplane.WebhookOptions{
		Paths: []string{"testdata/webhooks"}, CRDs: []string{"testdata/gadgets.yaml"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, hooks.Uninstall(context.Background())) })
	create := func(name string, replicas int) (*Gadget, error) {
		gadget := &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Replicas: replicas}
		return gadget, c.Create(t.Context(), gadget)
	}

	_, err = create("down", 1)
	require.ErrorContains(t, err, "connection refused", "nobody listens yet")

	t.Run("Refused", func(t *testing.T) {
		for name, tc := range map[string]struct {
			reason      string
			certificate controlplane.Certificate
			want        string
		}{
			"Expired": {"nobody has rotated it", controlplane.Certificate{End: time.Now().Add(-time.Hour)}, "certificate has expired"},
			"Foreign": {"the CA in the objects is an older one", controlplane.Certificate{Foreign: true}, "certificate signed by unknown authority"},
		} {
			t.Run(name, func(t *testing.T) {
				require.NoError(t, hooks.ReplaceCertificate(tc.certificate))
				serveGadgets(t, cp, namespace, hooks)
				_, err := create("refused", 1)
				assert.ErrorContains(t, err, tc.want, tc.reason)
			})
		}
	})

	require.NoError(t, hooks.ReplaceCertificate(controlplane.Certificate{}))
	t.Run("Served", func(t *testing.T) {
		serveGadgets(t, cp, namespace, hooks)
		gadget, err := create("sound", 1)
		require.NoError(t, err)
		assert.Equal(t, 3, gadget.Replicas, "the defaulting webhook has set it")
		_, err = create("large", 10)
		assert.ErrorContains(t, err, "10 replicas are too many")

		require.NoError(t, cp.InstallCRDs(t.Context(), "testdata/gadgets.yaml"))
		var old OldGadget
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gadget), &old))
		assert.Equal(t, 3, old.Size, "the conversion stays when the CRD is installed again")

		before := servedSerial(t, cp, hooks)
		require.NoError(t, hooks.ReplaceCertificate(controlplane.Certificate{}))
		eventually(t, "the new certificate is served", func(context.Context) (bool, error) {
			return servedSerial(t, cp, hooks).Cmp(before) != 0, nil
		})
	})

	require.NoError(t, hooks.Uninstall(t.Context()))
	gadget, err := create("uncalled", 10)
	require.NoError(t, err, "no webhook is called any more")
	var old OldGadget
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gadget), &old), "no conversion either")
	assert.NoDirExists(t, hooks.Options().CertDir)
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
	} {
		require.NoError(t, newClient(t, cp).List(t.Context(), list))
		assert.Zero(t, meta.LenList(list), "%T: nothing is left", list)
	}
}

// TestWebhooksOfOperator shows that no object has a CA if the operator makes its certificate, as cert-controller does.
func TestWebhooksOfOperator(t *testing.T) {
	cp := shared(t)
	hooks := controlplane.NewWebhooks(t, cp, controlplane.WebhookOptions{
		Paths: []string{"testdata/webhooks"}, CRDs: []string{"testdata/gadgets.yaml"}, WithoutCertificate: true,
	})
	assertEmpty(t, hooks.Options().CertDir)
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	c := newClient(t, cp)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "gadget-validation"}, &configuration))
	assert.Empty(t, configuration.Webhooks[0].ClientConfig.CABundle)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "gadgets.example.com"}, &crd))
	assert.Equal(t, apiextensionsv1.WebhookConverter, crd.Spec.Conversion.Strategy)
	assert.Empty(t, crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
}

func TestInstallWebhooksWrongPath(t *testing.T) {
	cp := shared(t)
	for name, tc := range map[string]struct {
		reason  string
		options controlplane.WebhookOptions
		want    string
	}{
		"MissingPath": {"a path may be relative to another folder", controlplane.WebhookOptions{Paths: []string{"testdata/missing"}}, "no such file or directory"},
		"NoConfiguration": {
			"subfolders are not read", controlplane.WebhookOptions{Paths: []string{"testdata"}},
			"no configuration of an admission webhook in testdata: name the folder that has the YAML files themselves, since subfolders are not read",
		},
		"NoCRD": {"the folders were swapped", controlplane.WebhookOptions{CRDs: []string{"testdata/webhooks"}}, "no CustomResourceDefinition in testdata/webhooks"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cp.InstallWebhooks(t.Context(), tc.options)
			assert.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}

// serveGadgets runs a manager with the webhooks of gadgets until the test ends, as a ServiceAccount without any right.
func serveGadgets(t *testing.T, cp *controlplane.ControlPlane, namespace string, hooks *controlplane.Webhooks) {
	t.Helper()
	config, err := cp.ServiceAccountConfig(t.Context(), namespace, "default")
	require.NoError(t, err)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: gadgetScheme(), WebhookServer: webhook.NewServer(hooks.Options()), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	require.NoError(t, err)
	require.NoError(t, gadgetWebhooks{}.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	eventually(t, "the webhooks are served", func(context.Context) (bool, error) {
		return mgr.GetWebhookServer().StartedChecker()(nil) == nil, nil
	})
}

// servedSerial returns the serial number of the served certificate. The certificate must be valid for the CA in the configuration.
func servedSerial(t *testing.T, cp *controlplane.ControlPlane, hooks *controlplane.Webhooks) *big.Int {
	t.Helper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	require.NoError(t, newClient(t, cp).Get(t.Context(), client.ObjectKey{Name: "gadget-validation"}, &configuration))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle))
	connection, err := tls.Dial("tcp", net.JoinHostPort("localhost", strconv.Itoa(hooks.Options().Port)), &tls.Config{RootCAs: roots})
	require.NoError(t, err)
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber
}
