package launch

import (
	"context"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// Access writes a kubeconfig with the permissions of a ServiceAccount to the folder of the control plane, and returns
// its path. If server is not empty, the kubeconfig refers to this address, such as the address of a proxy, instead of
// the API server's.
func Access(ctx context.Context, cp *controlplane.ControlPlane, namespace, account, server string) (path string, err error) {
	token, err := cp.Kubectl(ctx, "create", "token", account, "--namespace="+namespace, "--duration=24h")
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(cp.Kubeconfig())
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: strings.TrimSpace(token)}
	}
	for _, cluster := range config.Clusters {
		if server != "" {
			cluster.Server = server
		}
	}
	path = filepath.Join(filepath.Dir(cp.Kubeconfig()), account+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
