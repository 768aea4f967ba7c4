package controlplane

import "fmt"

// Option is an option of [Start], [New], [Shared] and [Build].
type Option func(*settings)

type settings struct {
	version       string // empty: see programs.Version
	controllers   bool
	nodes         int
	apiserverArgs []string
	crds          []string // files and folders
}

func newSettings(options []Option) settings {
	s := settings{nodes: 3}
	for _, option := range options {
		option(&s)
	}
	return s
}

// check returns an error if an option cannot be right. It starts nothing.
func (s settings) check() error {
	if s.nodes < 0 {
		return fmt.Errorf("%d simulated nodes cannot run: name a number of 0 or more", s.nodes)
	}
	return checkCRDs(s.crds)
}

// programs returns the names of the programs that run.
func (s settings) programs() []string {
	if s.controllers {
		return []string{etcd, apiserver, controllerManager, scheduler, kwok}
	}
	return []string{etcd, apiserver}
}

// WithControllers adds kube-controller-manager, kube-scheduler and three simulated nodes. Without it no controller runs:
// no pod is created for a Deployment, nothing is collected as garbage, and a namespace that is deleted stays in the phase
// Terminating.
func WithControllers() Option {
	return func(s *settings) { s.controllers = true }
}

// WithNodes is WithControllers with this number of simulated nodes. Each node runs up to 110 pods. With 0 the
// controllers run without nodes: each pod that is not assigned to a node stays Pending. [Start] and [Build] return an
// error if the number is negative.
func WithNodes(n int) Option {
	return func(s *settings) { s.controllers, s.nodes = true, n }
}

// WithCRDs installs the CustomResourceDefinitions in these files and folders before the controllers start, so that these
// need not be restarted as by [ControlPlane.InstallCRDs]. A path is relative to the working directory, which in a test is
// the folder of its package. Subfolders are not read. [Start] and [Build] return an error before they start or build anything
// if a path does not exist or has no CustomResourceDefinition.
func WithCRDs(paths ...string) Option {
	return func(s *settings) { s.crds = append(s.crds, paths...) }
}

// WithAPIServerArgs adds arguments to kube-apiserver, such as "--enable-admission-plugins=AlwaysPullImages".
func WithAPIServerArgs(args ...string) Option {
	return func(s *settings) { s.apiserverArgs = append(s.apiserverArgs, args...) }
}

// WithVersion runs a version of Kubernetes, such as "v1.34.4". The default is the one that the environment variable
// OPBLOCKS_KUBERNETES names, and else the one that this module pins: the current minor version of the time of its
// release. The programs of another version are built from its modules, once, for which the first build needs the network.
func WithVersion(version string) Option {
	return func(s *settings) { s.version = version }
}
