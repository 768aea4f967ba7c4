package test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/webhooks"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/schedule"
)

// TestWebhooks has the API server call the webhooks of an operator, with the configurations that the overlay with-webhook deploys.
func TestWebhooks(t *testing.T) {
	u := newUser(t, apiServer(t))
	i := operatortest.Install(t, u.User, "eru")
	hooks := controlplane.NewWebhooks(t, u.ControlPlane, controlplane.WebhookOptions{Paths: []string{u.webhookConfigurations(t, admissionregistrationv1.Ignore)}})
	u.create(t, "unchecked", enabled("web", "hourly")) // nobody listens yet, and the policy is Ignore

	startWithWebhooks(t, i, hooks, u.Namespace)
	said := &warnings{}
	access := u.ControlPlane.Config()
	access.WarningHandler = said
	c, err := client.New(access, client.Options{Scheme: scheme})
	require.NoError(t, err)

	t.Run("Refused", func(t *testing.T) {
		bad := u.eru("bad")
		bad.Spec = enabled("web", "0 0 * *")
		bad.Spec.TimeZone = "Mars"
		err := c.Create(t.Context(), bad)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		var fields []string
		for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
		assert.Equal(t, []string{"spec.schedule", "spec.timeZone"}, fields)
		_, err = u.ControlPlane.Kubectl(t.Context(), "patch", "eru/unchecked", "--namespace="+u.Namespace, "--type=merge", "-p", `{"spec":{"timeZone":"Mars"}}`)
		assert.ErrorContains(t, err, `The Eru "unchecked" is invalid: spec.timeZone: Invalid value: "Mars": there is no such zone`)
	})
	t.Run("Defaulted", func(t *testing.T) {
		plain := u.eru("plain")
		require.NoError(t, c.Create(t.Context(), plain))
		assert.Equal(t, "plain", plain.Spec.DeploymentName)
		assert.Equal(t, "UTC", plain.Spec.TimeZone)
		generated := &eruv1.Eru{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, GenerateName: "generated-"}}
		require.NoError(t, c.Create(t.Context(), generated))
		assert.Empty(t, generated.Spec.DeploymentName, "its name was not known yet")
	})
	t.Run("Warned", func(t *testing.T) {
		said.texts = nil
		hasty := u.eru("hasty")
		hasty.Spec.Options = schedule.Options{StartingDeadlineSeconds: new(int64(1))}
		require.NoError(t, c.Create(t.Context(), hasty))
		assert.Equal(t, []string{"spec.startingDeadlineSeconds: runs are lost while the operator is busy for 1 s; write 10 or more"}, said.texts)
	})
	t.Run("Unchecked", func(t *testing.T) {
		said.texts = nil
		operatortest.Change(t, c, u.eru("unchecked"), func(eru *eruv1.Eru) { metav1.SetMetaDataLabel(&eru.ObjectMeta, "team", "a") })
		require.NotEmpty(t, said.texts, "it was invalid before, so the update is accepted")
		assert.Contains(t, said.texts[0], `spec.schedule: Invalid value: "hourly"`)
	})
	t.Run("Operator", func(t *testing.T) {
		u.deploy(t, "asks", true)
		operatortest.Eventually(t, "the operator creates an Eru, past the webhooks", func(c *assert.CollectT) {
			eru := operatortest.Live(c, u, u.eru("asks"))
			assert.Equal(c, eruv1.PhaseStopped, eru.Status.Phase)
			assert.Empty(c, eru.Spec.TimeZone)
		})
	})
}

// TestWebhooksDown proves what works while nobody answers and the failurePolicy is Fail.
func TestWebhooksDown(t *testing.T) {
	u := newUser(t, apiServer(t))
	i := operatortest.Install(t, u.User, "eru")
	u.create(t, "before", eruv1.EruSpec{})
	controlplane.NewWebhooks(t, u.ControlPlane, controlplane.WebhookOptions{Paths: []string{u.webhookConfigurations(t, admissionregistrationv1.Fail)}})
	assert.ErrorContains(t, u.Create(t.Context(), u.eru("refused")), `failed calling webhook "defaulting.mtsre.meitu.com"`)

	startOperator(t, realTime, i.Access(t), ctrl.Options{}, u.Namespace)
	u.deploy(t, "asks", true)
	operatortest.Eventually(t, "the operator writes Erus and their status", func(c *assert.CollectT) {
		assert.Equal(c, eruv1.PhaseStopped, operatortest.Live(c, u, u.eru("asks")).Status.Phase)
		assert.Equal(c, eruv1.PhaseStopped, operatortest.Live(c, u, u.eru("before")).Status.Phase)
	})
	require.NoError(t, u.Delete(t.Context(), u.eru("before")))
	assert.True(t, apierrors.IsNotFound(u.Get(t.Context(), client.ObjectKey{Namespace: u.Namespace, Name: "before"}, u.eru("before"))), "it is deleted")
}

// webhookConfigurations writes the configurations of the overlay with-webhook to a file, for the user's namespace and with a failurePolicy. It
// returns the path of the file.
func (u *user) webhookConfigurations(t *testing.T, policy admissionregistrationv1.FailurePolicyType) string {
	t.Helper()
	rendered, err := u.ControlPlane.Kubectl(t.Context(), "kustomize", "../config/with-webhook")
	require.NoError(t, err)
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": u.Namespace}}
	var text []byte
	write := func(obj any) {
		document, err := yaml.Marshal(obj)
		require.NoError(t, err)
		text = append(append(text, "---\n"...), document...)
	}
	for document := range bytes.SplitSeq([]byte(rendered), []byte("\n---\n")) {
		var kind metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal(document, &kind))
		switch kind.Kind {
		case "MutatingWebhookConfiguration":
			var c admissionregistrationv1.MutatingWebhookConfiguration
			require.NoError(t, yaml.UnmarshalStrict(document, &c))
			require.Len(t, c.Webhooks, 1)
			c.Webhooks[0].NamespaceSelector, c.Webhooks[0].FailurePolicy = own, &policy
			write(c)
		case "ValidatingWebhookConfiguration":
			var c admissionregistrationv1.ValidatingWebhookConfiguration
			require.NoError(t, yaml.UnmarshalStrict(document, &c))
			require.Len(t, c.Webhooks, 1)
			c.Webhooks[0].NamespaceSelector, c.Webhooks[0].FailurePolicy = own, &policy
			write(c)
		}
	}
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// startWithWebhooks starts the operator as main does with --webhook-cert-dir, with its own rights. It returns when the webhooks are served.
func startWithWebhooks(t *testing.T, i *operatortest.Installation, hooks *controlplane.Webhooks, namespace string) {
	t.Helper()
	options := ctrl.Options{Scheme: scheme, Cache: controller.Cache(namespace), WebhookServer: webhook.NewServer(hooks.Options())}
	operatortest.Start(t, i.Access(t), options, &eruv1.Eru{}, func(mgr ctrl.Manager) error {
		if err := controller.SetupWithManager(mgr, realTime); err != nil {
			return err
		}
		return webhooks.SetupWithManager(mgr, realTime.MinInterval)
	})
	operatortest.Eventually(t, "the webhooks are served", func(c *assert.CollectT) {
		assert.NoError(c, options.WebhookServer.StartedChecker()(nil))
	})
}
