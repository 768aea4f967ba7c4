package controlplane_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
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
			eventually(t, "the authorizer has seen the binding", func(ctx context.Context) (bool, error) {
				err := c.List(ctx, &pods, client.InNamespace(namespace))
				if apierrors.IsForbidden(err) {
					return false, nil
				}
				return true, err
			})
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

func TestServiceAccountToken(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "create", "serviceaccount", "operator")
	config, err := cp.ServiceAccountConfig(t.Context(), namespace, "operator")
	require.NoError(t, err)
	_, err = client.New(config, client.Options{})
	require.NoError(t, err)

	_, claims, _ := strings.Cut(config.BearerToken, ".")
	claims, _, _ = strings.Cut(claims, ".")
	decoded, err := base64.RawURLEncoding.DecodeString(claims)
	require.NoError(t, err)
	var token struct{ Iat, Exp int64 }
	require.NoError(t, json.Unmarshal(decoded, &token))
	assert.Equal(t, 24*time.Hour, time.Duration(token.Exp-token.Iat)*time.Second)
}

func TestMarshalKubeconfig(t *testing.T) {
	tests := map[string]struct {
		reason string
		config *rest.Config
		err    string
	}{
		"Certificate": {
			reason: "an administrator of this package has one",
			config: &rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{
				CAData: []byte("authority"), CertData: []byte("certificate"), KeyData: []byte("key"),
			}},
		},
		"Token": {
			reason: "a ServiceAccount has one",
			config: &rest.Config{Host: "https://127.0.0.1:6443", BearerToken: "token"},
		},
		"Impersonation": {
			reason: "ConfigFor returns one",
			config: &rest.Config{Host: "https://127.0.0.1:6443", BearerToken: "token", Impersonate: rest.ImpersonationConfig{
				UserName: "jane", Groups: []string{"developers"}, Extra: map[string][]string{"reason": {"test"}},
			}},
		},
		"Plugin": {
			reason: "its program may not be there where the file is used",
			config: &rest.Config{Host: "https://127.0.0.1:6443", ExecProvider: &api.ExecConfig{}},
			err:    "a kubeconfig file cannot have this access: it has a proxy or a plug-in for credentials",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			content, err := controlplane.MarshalKubeconfig(tc.config)
			if tc.err != "" {
				require.EqualError(t, err, tc.err, tc.reason)
				return
			}
			require.NoError(t, err, tc.reason)
			got, err := clientcmd.RESTConfigFromKubeConfig(content)
			require.NoError(t, err)
			assert.Equal(t, tc.config, got, tc.reason)
		})
	}
}

func TestKubectl(t *testing.T) {
	minor := "v1.37."
	if version := os.Getenv("OPBLOCKS_KUBERNETES"); version != "" {
		minor = version[:strings.LastIndex(version, ".")+1]
	}
	out, err := shared(t).Kubectl(t.Context(), "version")
	require.NoError(t, err)
	assert.Contains(t, out, "Client Version: "+minor)
	assert.Contains(t, out, "Server Version: "+minor)
}

func TestKubectlFails(t *testing.T) {
	_, err := shared(t).Kubectl(t.Context(), "get", "pod", "no-such-pod")
	assert.EqualError(t, err,
		`kubectl get pod no-such-pod: exit status 1: Error from server (NotFound): pods "no-such-pod" not found`)
}
