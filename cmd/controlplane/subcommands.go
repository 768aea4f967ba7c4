package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

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
	assets, err := controlplane.Build(ctx, controlplane.WithControllers(), controlplane.WithVersion(*version))
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
	admin, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("KUBECONFIG names no cluster: %w", err)
	}
	config, err := controlplane.ServiceAccountConfig(ctx, admin, namespace, name)
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
