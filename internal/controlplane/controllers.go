package controlplane

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
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
		cp.wait(ctx, controllerManager, cp.defaultAccount(corev1.NamespaceDefault)),
		cp.wait(ctx, kwok, cp.nodesReady),
	)
}
