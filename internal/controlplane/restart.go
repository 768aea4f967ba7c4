package controlplane

import "context"

// RestartAPIServer kills kube-apiserver and starts it again on the same port. All objects survive; watches break.
func (cp *ControlPlane) RestartAPIServer(ctx context.Context) error {
	return cp.restart(ctx, apiserver)
}

// RestartEtcd kills etcd and starts it again with its data. All objects survive.
func (cp *ControlPlane) RestartEtcd(ctx context.Context) error {
	return cp.restart(ctx, etcd)
}

// RestartControllerManager kills kube-controller-manager and starts it again. Its garbage collector then knows all objects
// as they are.
func (cp *ControlPlane) RestartControllerManager(ctx context.Context) error {
	return cp.restart(ctx, controllerManager)
}

func (cp *ControlPlane) restart(ctx context.Context, name string) error {
	if err := cp.rerun(name); err != nil {
		return err
	}
	return cp.wait(ctx, apiserver, cp.apiServerReady)
}
