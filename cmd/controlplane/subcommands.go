package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/serviceaccount"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// build builds the programs of a control plane with controllers.
func build(ctx context.Context, args []string, stdout io.Writer) error {
	set := newFlags()
	version := set.String("kubernetes", "", "")
	if err := parse(set, args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return usageError{fmt.Errorf("build takes no argument %q", set.Arg(0))}
	}
	assets, err := controlplane.Build(ctx, controlplane.Options{Controllers: true, Version: *version})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "export KUBEBUILDER_ASSETS=%s\n", quote(assets))
	return nil
}

// kubeconfig prints a kubeconfig with the rights of a ServiceAccount.
func kubeconfig(ctx context.Context, args []string, stdout io.Writer) error {
	set := newFlags()
	if err := parse(set, args); err != nil {
		return err
	}
	namespace, name, found := strings.Cut(set.Arg(0), "/")
	if !found || namespace == "" || name == "" || set.NArg() > 1 {
		return usageError{errors.New("name one ServiceAccount as namespace/name")}
	}
	admin, err := loadKubeconfig()
	if err != nil {
		return err
	}
	admin.WarningHandler = rest.NoWarnings{} // the handler of controller-runtime would log warnings
	c, err := client.New(admin, client.Options{})
	if err != nil {
		return err
	}
	config, err := serviceaccount.Config(ctx, c, admin, namespace, name)
	if err != nil {
		return err
	}
	content, err := controlplane.MarshalKubeconfig(config)
	if err != nil {
		return err
	}
	_, err = stdout.Write(content)
	return err
}

// loadKubeconfig returns the config from the files in KUBECONFIG, or else from ~/.kube/config, as kubectl does.
func loadKubeconfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.Warner = func(error) {} // no warning is needed: the error names the missing files
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err == nil {
		return config, nil
	}
	files := strings.Join(rules.GetLoadingPrecedence(), ", ")
	exists := false
	for _, file := range rules.GetLoadingPrecedence() {
		_, missing := os.Stat(file)
		exists = exists || missing == nil
	}
	switch {
	case !clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("kubeconfig %s: %w", files, err)
	case exists: // client-go's message would name KUBERNETES_MASTER, which is not read here
		return nil, fmt.Errorf("kubeconfig %s has no current context: name another file by KUBECONFIG", files)
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		return nil, fmt.Errorf("KUBECONFIG names %s, which does not exist: name the kubeconfig of a cluster", files)
	default:
		return nil, fmt.Errorf("there is no kubeconfig %s: name the kubeconfig of a cluster by KUBECONFIG", files)
	}
}
