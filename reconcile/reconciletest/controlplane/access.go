package controlplane

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/opblocks/opblocks/internal/serviceaccount"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/internal/programs"
)

const adminGroup = "system:masters"

// Config returns a config with the rights of a cluster administrator. It does not limit the rate of requests. Each call returns a copy.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// ConfigFor returns a config that impersonates a user, so RBAC applies to the user's name and groups. A ServiceAccount is the user
// "system:serviceaccount:<namespace>:<name>", and its groups need not be given.
func (cp *ControlPlane) ConfigFor(user string, groups ...string) *rest.Config {
	config := cp.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// ServiceAccountConfig returns a config with the rights of a pod of the ServiceAccount. It has a token from the API server, which is valid
// for 24 hours. If the ServiceAccount does not exist, apierrors.IsNotFound recognizes the error.
func (cp *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	return serviceaccount.Config(ctx, cp.client, cp.admin, namespace, name)
}

// Kubeconfig returns the path of a kubeconfig file with the rights of a cluster administrator. When the control plane stops, the file is
// removed.
func (cp *ControlPlane) Kubeconfig() string { return cp.processes.file("kubeconfig") }

// connect writes the administrator's token for kube-apiserver, and sets the administrator's config. It uses a token, not a client
// certificate: kube-apiserver would verify the signature of a certificate at each request, which takes longer than looking up a token.
func (cp *ControlPlane) connect(ca *authority, port int) error {
	token := rand.Text()
	if err := cp.processes.write("tokens.csv", []byte(token+",admin,admin,"+adminGroup+"\n")); err != nil {
		return err
	}
	cp.admin = &rest.Config{
		Host:            fmt.Sprintf("https://%s:%d", loopback, port),
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.bundle()},
		BearerToken:     token,
		QPS:             -1,
	}
	content, err := MarshalKubeconfig(cp.admin)
	if err != nil {
		return err
	}
	return cp.processes.write("kubeconfig", content)
}

// MarshalKubeconfig returns the content of a kubeconfig file for a config, such as the result of [ControlPlane.ServiceAccountConfig] or
// [ControlPlane.ConfigFor]. The content is secret: write it to a file with mode 0600. It has the address of the API server, the
// certificates, the token, the user name and password, and the user to impersonate. MarshalKubeconfig returns an error if the config has a
// proxy or a plug-in for credentials.
func MarshalKubeconfig(config *rest.Config) ([]byte, error) {
	if config.Proxy != nil || config.ExecProvider != nil || config.AuthProvider != nil {
		return nil, errors.New("a kubeconfig file cannot have this access: it has a proxy or a plug-in for credentials")
	}
	return clientcmd.Write(api.Config{
		CurrentContext: "opblocks",
		Contexts:       map[string]*api.Context{"opblocks": {Cluster: "opblocks", AuthInfo: "opblocks"}},
		Clusters: map[string]*api.Cluster{"opblocks": {
			Server: config.Host, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
			CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*api.AuthInfo{"opblocks": {
			ClientCertificate: config.CertFile, ClientCertificateData: config.CertData,
			ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
			Token: config.BearerToken, TokenFile: config.BearerTokenFile,
			Username: config.Username, Password: config.Password,
			Impersonate: config.Impersonate.UserName, ImpersonateUID: config.Impersonate.UID,
			ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
		}},
	})
}

// withoutWarnings returns a config for the package's own requests that drops the API server's warnings. Otherwise controller-runtime would
// log them. If the test has not set a logger within 30 seconds, controller-runtime would also print a stack trace.
func withoutWarnings(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// rawConfig returns a config for requests outside of the typed API, such as /readyz.
func rawConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

// Kubectl runs kubectl as a cluster administrator and returns its standard output. kubectl is built if need be, see
// [Build]. If it fails, the error has its standard error.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	paths, err := programs.Ensure(ctx, cp.options.Version, kubectl)
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, paths[kubectl], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig(), "KUBECACHEDIR="+cp.processes.file("kubectl"))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
