package controlplane

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const adminGroup = "system:masters"

// Config gives a cluster administrator's access, without a limit on the request rate.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// ConfigFor gives the access of a user: RBAC applies to this name and these groups, by impersonation. The groups of a
// ServiceAccount ("system:serviceaccount:<namespace>:<name>") need not be named.
func (cp *ControlPlane) ConfigFor(user string, groups ...string) *rest.Config {
	config := cp.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// ServiceAccountConfig gives the access that a pod of the ServiceAccount has: a token that the API server issued for it,
// valid for an hour.
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

// Kubeconfig is the path of a file with which kubectl and others are cluster administrators. It goes with the control plane.
func (cp *ControlPlane) Kubeconfig() string { return cp.file("kubeconfig") }

// connect makes the administrator's access and stores it as a kubeconfig file.
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

// rawConfig is for requests outside the typed API, such as /readyz.
func rawConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}
