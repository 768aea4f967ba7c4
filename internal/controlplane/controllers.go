package controlplane

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startControllers starts what makes things happen. Its programs are all administrators and serve nothing.
func (cp *ControlPlane) startControllers(ctx context.Context) error {
	kubeconfig := "--kubeconfig=" + cp.Kubeconfig()
	err := errors.Join(
		cp.run(controllerManager, kubeconfig,
			"--secure-port=0",
			"--leader-elect=false",
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
			"--root-ca-file="+cp.file("ca.crt"),
			"--service-account-private-key-file="+cp.file("serviceaccount.key"),
		),
		cp.run(scheduler, kubeconfig,
			"--secure-port=0",
			"--leader-elect=false",
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
		),
		cp.startNodes(ctx),
	)
	if err != nil {
		return err
	}
	return errors.Join(
		cp.wait(ctx, controllerManager, cp.accountsReady),
		cp.wait(ctx, kwok, cp.nodesReady),
	)
}

// accountsReady waits for the ServiceAccount without which no pod can be created.
func (cp *ControlPlane) accountsReady(ctx context.Context) error {
	key := client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "default"}
	return cp.client.Get(ctx, key, &corev1.ServiceAccount{})
}
