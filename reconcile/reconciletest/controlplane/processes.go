package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/internal/programs"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

const (
	etcd              = programs.Etcd
	apiserver         = programs.APIServer
	controllerManager = programs.ControllerManager
	scheduler         = programs.Scheduler
	kwok              = programs.Kwok
	kubectl           = programs.Kubectl
)

const (
	pollInterval   = 25 * time.Millisecond
	attemptTimeout = 20 * time.Second // another program may have taken the port, and never answer
)

// running is a running program and the command that starts it again.
type running struct {
	command supervisor.Command
	process *supervisor.Process
}

// run starts a program, and does not wait until it is ready.
func (cp *ControlPlane) run(name string, args ...string) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.launch(supervisor.Command{Name: name, Path: cp.programs[name], Args: args})
}

// rerun kills a program and starts it again.
func (cp *ControlPlane) rerun(name string) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	before := cp.running[name]
	if err := before.process.Kill(); err != nil {
		return err
	}
	if err := cp.launch(before.command); err != nil || name != controllerManager || !cp.paused {
		return err
	}
	return cp.running[name].process.Suspend()
}

func (cp *ControlPlane) launch(command supervisor.Command) error {
	process, err := cp.supervisor.Start(command)
	if err == nil {
		cp.running[command.Name] = running{command, process}
	}
	return err
}

func (cp *ControlPlane) process(name string) *supervisor.Process {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.running[name].process
}

// wait polls until ready returns nil. It returns an error if the program ends or is paused, or if the time is over.
func (cp *ControlPlane) wait(ctx context.Context, name string, ready func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		last = ready(ctx)
		return last == nil, cp.failure(name)
	})
	if err == nil || cp.failure(name) != nil {
		return err
	}
	return fmt.Errorf("%s is not ready: %w: %w; the last lines of its log:\n%s", name, err, last, cp.process(name).Tail())
}

// failure returns why a program cannot become ready, or nil.
func (cp *ControlPlane) failure(name string) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.paused && slices.Contains(controllers, name) {
		return fmt.Errorf("%s is paused: call ResumeControllers first", name)
	}
	return cp.running[name].process.Err()
}

// file returns the path of a file in the control plane's folder.
func (cp *ControlPlane) file(name string) string {
	return filepath.Join(cp.supervisor.Folder(), name)
}

func (cp *ControlPlane) write(name string, content []byte) error {
	return os.WriteFile(cp.file(name), content, 0o600)
}

// WriteLogs writes the logs of all programs of Kubernetes, one after the other, each below a line with its name.
func (cp *ControlPlane) WriteLogs(w io.Writer) error {
	for _, name := range []string{etcd, apiserver, controllerManager, scheduler, kwok} {
		content, err := os.ReadFile(cp.file(name + ".log"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "==> %s <==\n%s\n", name, content); err != nil {
			return err
		}
	}
	return nil
}

// RestartAPIServer kills kube-apiserver, starts it again on the same port, and returns when it is ready. Objects are
// kept. Watches and other requests in flight break.
func (cp *ControlPlane) RestartAPIServer(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := cp.restart(ctx, apiserver)
		if err == nil || attempt == startAttempts || !mayStartLater(cp.process(apiserver).Tail()) {
			return err
		}
	}
}

// RestartEtcd kills etcd, starts it again with its data, and returns when the API server is ready. Objects are kept.
func (cp *ControlPlane) RestartEtcd(ctx context.Context) error {
	return cp.restart(ctx, etcd)
}

// RestartControllerManager kills kube-controller-manager and starts it again. Its garbage collector then has all
// kinds and objects. After [ControlPlane.PauseControllers] the new process is paused as well. It returns an error if
// none runs, see [WithControllers].
func (cp *ControlPlane) RestartControllerManager(ctx context.Context) error {
	if !cp.settings.controllers {
		return errNoControllers
	}
	return cp.restart(ctx, controllerManager)
}

func (cp *ControlPlane) restart(ctx context.Context, name string) error {
	if err := cp.rerun(name); err != nil {
		return err
	}
	return cp.wait(ctx, apiserver, cp.apiServerReady)
}

// Run runs another program, such as an operator, until the control plane stops. Its output goes to <name>.log in the
// control plane's folder, beside the file of [ControlPlane.Kubeconfig]. Two programs may not have the same name.
func (cp *ControlPlane) Run(name, path string, args ...string) (*supervisor.Process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.launch(supervisor.Command{Name: name, Path: path, Args: args}); err != nil {
		return nil, err
	}
	return cp.running[name].process, nil
}
