package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/programs"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// startTimeout limits every wait for a program to become ready. The machine may be busy with other tests.
const startTimeout = 5 * time.Minute

// ControlPlane is a running control plane.
type ControlPlane struct {
	settings   settings
	programs   map[string]string
	supervisor *supervisor.Supervisor
	admin      *rest.Config
	client     client.Client

	mu      sync.Mutex // tests that run in parallel may install CRDs, which restarts a program
	running map[string]running
}

// Start starts a control plane and returns when it is ready: the default namespace exists and, with controllers, its
// default ServiceAccount, and the simulated nodes are Ready. The context limits the start only. Call
// [ControlPlane.Stop] to stop it.
func Start(ctx context.Context, options ...Option) (*ControlPlane, error) {
	cp := &ControlPlane{settings: settings{nodes: 3}, running: map[string]running{}}
	for _, option := range options {
		option(&cp.settings)
	}
	names := []string{"supervise", etcd, apiserver}
	if cp.settings.controllers {
		names = append(names, controllerManager, scheduler, kwok)
	}
	var err error
	if cp.programs, err = programs.Ensure(ctx, names...); err != nil {
		return nil, err
	}
	if cp.supervisor, err = supervisor.New(cp.programs["supervise"]); err != nil {
		return nil, err
	}
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a control plane: %w", err), cp.Stop())
	}
	return cp, nil
}

func (cp *ControlPlane) start(ctx context.Context) error {
	if err := cp.startEtcd(ctx); err != nil {
		return err
	}
	if err := cp.startAPIServer(ctx); err != nil {
		return err
	}
	if len(cp.settings.crds) > 0 {
		if err := cp.installCRDs(cp.settings.crds...); err != nil {
			return err
		}
	}
	if !cp.settings.controllers {
		return nil
	}
	return cp.startControllers(ctx)
}

// Stop ends all programs and removes their files. It may be called twice.
func (cp *ControlPlane) Stop() error { return cp.supervisor.Stop() }

// Detach keeps the control plane running when this program ends. It runs until the process whose id is returned
// receives a SIGTERM: `kill <pid>`.
func (cp *ControlPlane) Detach() (pid int, err error) {
	return cp.supervisor.PID(), cp.supervisor.Detach()
}

// Option is an option of [Start].
type Option func(*settings)

type settings struct {
	controllers   bool
	nodes         int
	apiserverArgs []string
	crds          []string // files and folders
}

// WithControllers adds kube-controller-manager, kube-scheduler and three simulated nodes.
func WithControllers() Option {
	return func(s *settings) { s.controllers = true }
}

// WithNodes is WithControllers with this number of simulated nodes.
func WithNodes(n int) Option {
	return func(s *settings) { s.controllers, s.nodes = true, n }
}

// WithCRDs installs the CustomResourceDefinitions in these files and folders before the controllers start, so that these need
// not be restarted as by [ControlPlane.InstallCRDs].
func WithCRDs(paths ...string) Option {
	return func(s *settings) { s.crds = append(s.crds, paths...) }
}

// WithAPIServerArgs adds arguments to kube-apiserver, such as "--enable-admission-plugins=AlwaysPullImages".
func WithAPIServerArgs(args ...string) Option {
	return func(s *settings) { s.apiserverArgs = append(s.apiserverArgs, args...) }
}
