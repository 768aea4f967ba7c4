package controlplane_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

func TestServiceAccountConfig(t *testing.T) {
	for name, config := range map[string]func(*testing.T, *controlplane.ControlPlane, string) *rest.Config{
		"Token": func(t *testing.T, cp *controlplane.ControlPlane, namespace string) *rest.Config {
			config, err := cp.ServiceAccountConfig(t.Context(), namespace, "operator")
			require.NoError(t, err)
			return config
		},
		"Impersonation": func(_ *testing.T, cp *controlplane.ControlPlane, namespace string) *rest.Config {
			return cp.ConfigFor("system:serviceaccount:" + namespace + ":operator")
		},
	} {
		t.Run(name, func(t *testing.T) {
			cp := shared(t)
			namespace := controlplane.Namespace(t, cp)
			kubectl(t, cp, namespace, "create", "serviceaccount", "operator")
			c, err := client.New(config(t, cp, namespace), client.Options{})
			require.NoError(t, err)

			var self authenticationv1.SelfSubjectReview
			require.NoError(t, c.Create(t.Context(), &self))
			assert.Equal(t, "system:serviceaccount:"+namespace+":operator", self.Status.UserInfo.Username)
			assert.Subset(t, self.Status.UserInfo.Groups, []string{"system:serviceaccounts", "system:authenticated"})

			var pods corev1.PodList
			err = c.List(t.Context(), &pods, client.InNamespace(namespace))
			assert.True(t, apierrors.IsForbidden(err), "%v", err)

			kubectl(t, cp, namespace, "create", "rolebinding", "operator", "--clusterrole=view",
				"--serviceaccount="+namespace+":operator")
			require.NoError(t, c.List(t.Context(), &pods, client.InNamespace(namespace)))
			var secrets corev1.SecretList
			err = c.List(t.Context(), &secrets, client.InNamespace(namespace))
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
		})
	}
}

func TestServiceAccountConfigNotFound(t *testing.T) {
	_, err := shared(t).ServiceAccountConfig(t.Context(), "default", "nobody")
	assert.EqualError(t, err,
		`request a token of ServiceAccount default/nobody: serviceaccounts "nobody" not found`)
}

func TestKubectl(t *testing.T) {
	out, err := shared(t).Kubectl(t.Context(), "version")
	require.NoError(t, err)
	assert.Contains(t, out, "Client Version: v1.36.")
	assert.Contains(t, out, "Server Version: v1.36.")
}

func TestKubectlFails(t *testing.T) {
	_, err := shared(t).Kubectl(t.Context(), "get", "pod", "no-such-pod")
	assert.EqualError(t, err,
		`kubectl get pod no-such-pod: exit status 1: Error from server (NotFound): pods "no-such-pod" not found`)
}
