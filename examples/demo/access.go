package main

import (
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// accessOf writes a kubeconfig with the rights of a ServiceAccount, and nothing more.
func (t *tour) accessOf(namespace, account string) (path string, err error) {
	token, err := t.cp.Kubectl(t.ctx, "create", "token", account, "--namespace="+namespace, "--duration=24h")
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(t.cp.Kubeconfig())
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: strings.TrimSpace(token)}
	}
	path = t.file(account + ".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
