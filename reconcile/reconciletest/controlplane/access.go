package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/programs"
)

const adminGroup = "system:masters"

// Config returns the access of a cluster administrator, without a limit on the request rate.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// ConfigFor returns the access of a user, by impersonation: RBAC applies to the name and the groups. A ServiceAccount
// is the user "system:serviceaccount:<namespace>:<name>", and its groups need not be named.
func (cp *ControlPlane) ConfigFor(user string, groups ...string) *rest.Config {
	config := cp.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// ServiceAccountConfig returns the access that a pod of the ServiceAccount has: a token from the API server, valid
// for an hour.
func (cp *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := &authenticationv1.TokenRequest{}
	if err := cp.client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("request a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(cp.admin)
	config.BearerToken = token.Status.Token
	return config, nil
}

// Kubeconfig returns the path of a kubeconfig file with the access of a cluster administrator. The file is removed with
// the control plane.
func (cp *ControlPlane) Kubeconfig() string { return cp.file("kubeconfig") }

// connect creates the administrator's access and writes the kubeconfig file.
func (cp *ControlPlane) connect(ca *authority, port int) error {
	admin, err := ca.client("admin", adminGroup)
	if err != nil {
		return err
	}
	cp.admin = &rest.Config{
		Host: fmt.Sprintf("https://%s:%d", loopback, port),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: ca.bundle(), CertData: admin.certificate, KeyData: admin.key,
		},
		QPS: -1,
	}
	return clientcmd.WriteToFile(api.Config{
		CurrentContext: "opblocks",
		Contexts:       map[string]*api.Context{"opblocks": {Cluster: "opblocks", AuthInfo: "admin"}},
		Clusters: map[string]*api.Cluster{"opblocks": {
			Server: cp.admin.Host, CertificateAuthorityData: ca.bundle(),
		}},
		AuthInfos: map[string]*api.AuthInfo{"admin": {
			ClientCertificateData: admin.certificate, ClientKeyData: admin.key,
		}},
	}, cp.Kubeconfig())
}

// rawConfig returns a config for requests outside of the typed API, such as /readyz.
func rawConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

// Kubectl runs kubectl as a cluster administrator and returns its standard output. The error has its standard error.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	paths, err := programs.Ensure(ctx, "kubectl")
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, paths["kubectl"], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig(), "KUBECACHEDIR="+cp.file("kubectl"))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
