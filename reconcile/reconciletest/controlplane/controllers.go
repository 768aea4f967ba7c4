package controlplane

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// startControllers starts the controllers, the scheduler and the simulated nodes. They have the rights of a cluster administrator. None of
// them listens on a port.
func (cp *ControlPlane) startControllers(ctx context.Context) error {
	kubeconfig := "--kubeconfig=" + cp.Kubeconfig()
	err := errors.Join(
		cp.processes.run(controllerManager, kubeconfig,
			"--secure-port=0",
			"--leader-elect=false",
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
			"--node-monitor-grace-period=1h", // on a busy machine, kwok may renew the nodes' leases late
			"--root-ca-file="+cp.processes.file("ca.crt"),
			"--service-account-private-key-file="+cp.processes.file("serviceaccount.key"),
		),
		cp.processes.run(scheduler, kubeconfig,
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
		cp.processes.wait(ctx, controllerManager, cp.defaultAccount(corev1.NamespaceDefault)),
		cp.processes.wait(ctx, kwok, cp.nodesReady),
	)
}

// startControllersAgain starts the controllers, the scheduler and kwok after they were killed. It deletes the leases of the nodes: the new kwok
// would wait until the leases of the former one expire.
func (cp *ControlPlane) startControllersAgain(ctx context.Context) error {
	if err := cp.client.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return fmt.Errorf("delete the leases of the nodes: %w", err)
	}
	for _, name := range controllers {
		if err := cp.processes.startAgain(name); err != nil {
			return err
		}
	}
	return nil
}

var errNoControllers = errors.New("no controllers run: start the control plane with the option Controllers")

// controllers are the programs that [ControlPlane.PauseControllers] pauses.
var controllers = []string{controllerManager, scheduler, kwok}

// PauseControllers suspends kube-controller-manager, kube-scheduler and kwok, as kill -STOP does, and returns when they have
// stopped. A test shows with it what an operator does while controllers are slow: a Deployment gets no ReplicaSet and no status,
// a pod gets no node, and an object with a finalizer of a controller, such as a namespace or a volume claim, is not deleted.
//
// The API server may still be serving a request that a controller sent before. During the pause [ControlPlane.CreateNamespace]
// returns an error and [Namespace] fails the test, because kube-controller-manager creates the ServiceAccount of a namespace. The
// other methods work. [ControlPlane.RestartControllerManager] and [ControlPlane.InstallCRDs] start a kube-controller-manager
// that is paused as well. After a pause of more than an hour nodes may be NotReady for a moment.
//
// PauseControllers does nothing if the controllers are paused already. It returns an error if none run, see [Options.Controllers].
func (cp *ControlPlane) PauseControllers() error {
	return cp.processes.setPaused(true, (*supervisor.Process).Suspend)
}

// ResumeControllers makes the controllers go on after [ControlPlane.PauseControllers]. They then receive the events of the pause
// one after the other, so they may act on an object that has changed again since.
//
// ResumeControllers does nothing if the controllers are not paused. It returns an error if none run, see [Options.Controllers].
func (cp *ControlPlane) ResumeControllers() error {
	return cp.processes.setPaused(false, (*supervisor.Process).Resume)
}

func (p *processes) setPaused(paused bool, set func(*supervisor.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[controllerManager].process == nil {
		return errNoControllers
	}
	p.paused = paused
	var errs []error
	for _, name := range controllers {
		errs = append(errs, set(p.running[name].process))
	}
	return errors.Join(errs...)
}

// HoldAnnotation makes kwok ignore a pod: the pod stays Pending until the annotation is removed.
const HoldAnnotation = "controlplane.opblocks.dev/hold"

//go:embed stages.yaml
var stages []byte

// startNodes creates nodes and starts kwok, which simulates them.
func (cp *ControlPlane) startNodes(ctx context.Context) error {
	if err := cp.processes.write("stages.yaml", stages); err != nil {
		return err
	}
	for i := range cp.options.nodes() {
		name := fmt.Sprintf("node-%d", i+1)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
		}}
		if err := cp.client.Create(ctx, node); err != nil {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	if err := cp.client.Create(ctx, storageClass()); err != nil {
		return fmt.Errorf("create the storage class: %w", err)
	}
	return cp.processes.run(kwok,
		"--kubeconfig="+cp.Kubeconfig(),
		"--config="+cp.processes.file("stages.yaml"),
		"--manage-all-nodes",
		"--cidr=10.0.0.0/12",
		"--node-lease-duration-seconds=40",
	)
}

// storageClass returns the default storage class. kwok provides its volumes. A claim may later ask for more storage, but its
// status.capacity does not change, since no storage driver runs.
func storageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "simulated",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          "controlplane.opblocks.dev/simulated",
		AllowVolumeExpansion: new(true),
	}
}

func (cp *ControlPlane) nodesReady(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := cp.client.List(ctx, &nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 || !slices.ContainsFunc(node.Status.Conditions, isReady) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	return nil
}

func isReady(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
}
