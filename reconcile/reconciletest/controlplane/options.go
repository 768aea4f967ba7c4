package controlplane

import "fmt"

// Options say what runs, for [Start], [New], [Shared] and [Build]. The zero value is an API server with its etcd.
type Options struct {
	// Controllers adds kube-controller-manager, kube-scheduler and three simulated nodes. Without it no controller runs:
	// no pod is created for a Deployment, nothing is collected as garbage, and a namespace that is deleted stays in the phase
	// Terminating.
	Controllers bool

	// Nodes adds the controllers too, with this number of simulated nodes in place of three. Each node runs up to 110 pods. With 0 the
	// controllers run without nodes: each pod that is not assigned to a node stays Pending.
	Nodes *int

	// CRDs are files and folders with CustomResourceDefinitions. They are installed before the controllers start. So no
	// controller has to be restarted, as after [ControlPlane.InstallCRDs]. A path is relative to the working directory, which in
	// a test is the folder of its package. Subfolders are not read.
	CRDs []string

	// APIServerArgs are further arguments of kube-apiserver, such as "--enable-admission-plugins=AlwaysPullImages".
	APIServerArgs []string

	// Version is a version of Kubernetes, such as "v1.34.4". If it is empty, the environment variable OPBLOCKS_KUBERNETES
	// names the version. Without the variable it is the version that this module pins: the minor version that was current
	// when the module was released. The programs of another version are built from its modules, once, for which the first
	// build needs the network.
	Version string
}

// defaultNodes is the number of simulated nodes if Controllers is set and Nodes is not.
const defaultNodes = 3

// check returns an error if an option is invalid. It starts no program.
func (o *Options) check() error {
	if o.nodes() < 0 {
		return fmt.Errorf("%d simulated nodes cannot run: name a number of 0 or more", o.nodes())
	}
	return checkCRDs(o.CRDs)
}

// hasControllers reports whether controllers run.
func (o *Options) hasControllers() bool { return o.Controllers || o.Nodes != nil }

// nodes returns the number of simulated nodes that run with the controllers.
func (o *Options) nodes() int {
	if o.Nodes == nil {
		return defaultNodes
	}
	return *o.Nodes
}

// programs returns the names of the programs that run.
func (o *Options) programs() []string {
	if o.hasControllers() {
		return []string{etcd, apiserver, controllerManager, scheduler, kwok}
	}
	return []string{etcd, apiserver}
}
