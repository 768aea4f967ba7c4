package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/internal/programs"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// startTimeout is the longest time that is waited for a program to become ready. The machine may be busy with other tests.
const startTimeout = 5 * time.Minute

// ControlPlane is a running control plane. Its methods may be called concurrently.
type ControlPlane struct {
	options   Options
	processes processes
	admin     *rest.Config
	client    client.Client
}

// Start starts a control plane and returns when it is ready: the default namespace exists, the CustomResourceDefinitions
// are served, and, with controllers, the default ServiceAccount exists and the simulated nodes are Ready. This takes
// about 2 seconds, or 3 with controllers. Programs that are missing are built first, see [Build]. The context limits the
// start only: call [ControlPlane.Stop] to stop the control plane.
//
// If a program ends or is not ready after 5 minutes, the error has the last lines of its log. Nothing is left running then.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	cp := &ControlPlane{options: options, processes: processes{running: map[string]running{}}}
	if err := cp.options.check(); err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	var err error
	if cp.processes.paths, err = programs.Ensure(ctx, cp.options.Version, cp.options.programs()...); err != nil {
		return nil, err
	}
	if cp.processes.supervisor, err = supervisor.New(ctx); err != nil {
		return nil, err
	}
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a control plane: %w", err), cp.Stop())
	}
	return cp, nil
}

func (cp *ControlPlane) start(ctx context.Context) error {
	if err := cp.processes.startEtcd(ctx); err != nil {
		return err
	}
	if err := cp.startAPIServer(ctx); err != nil {
		return err
	}
	if len(cp.options.CRDs) > 0 {
		if err := cp.installCRDs(ctx, cp.options.CRDs...); err != nil {
			return err
		}
	}
	if !cp.options.hasControllers() {
		return nil
	}
	return cp.startControllers(ctx)
}

// Stop ends all programs and removes their files, also the kubeconfig file. It may be called twice.
func (cp *ControlPlane) Stop() error { return cp.processes.supervisor.Stop() }

// Detach keeps the control plane running when this program ends. It runs until [ControlPlane.Stop] is called, or until the process with the
// returned id receives a SIGTERM: `kill <pid>`.
func (cp *ControlPlane) Detach() (pid int, err error) {
	return cp.processes.supervisor.PID(), cp.processes.supervisor.Detach()
}
