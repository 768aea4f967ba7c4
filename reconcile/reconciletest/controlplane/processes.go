package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
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
	attemptTimeout = 20 * time.Second // another program may have taken the port, and may never answer
)

// processes are the programs of a control plane, and the folder of their files.
type processes struct {
	paths      map[string]string // the executables, by the names of the programs
	supervisor *supervisor.Supervisor

	mu      sync.Mutex // guards the fields below: parallel tests may install CRDs, which restarts a program
	running map[string]running
	paused  bool // the controllers are paused
}

// running is a running program and the command that starts it again.
type running struct {
	command supervisor.Command
	process *supervisor.Process
}

// run starts a program of Kubernetes, and does not wait until it is ready.
func (p *processes) run(name string, args ...string) error {
	_, err := p.start(supervisor.Command{Name: name, Path: p.paths[name], Args: args})
	return err
}

// start starts a program, and does not wait until it is ready.
func (p *processes) start(command supervisor.Command) (*supervisor.Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.launch(command)
}

// rerun kills a program, and starts it again with the same command.
func (p *processes) rerun(name string) error {
	return p.rerunAfter(name, func() error { return nil })
}

// rerunAfter kills a program, calls a function, and starts the program again.
func (p *processes) rerunAfter(name string, do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.running[name].process.Kill(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return p.relaunch(name)
}

// startAgain starts a program that was killed.
func (p *processes) startAgain(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.relaunch(name)
}

// relaunch starts a program again with the same command. If the controllers are paused and it is one of them, it is paused too. The caller
// holds the lock.
func (p *processes) relaunch(name string) error {
	process, err := p.launch(p.running[name].command)
	if err != nil || !p.paused || !slices.Contains(controllers, name) {
		return err
	}
	return process.Suspend()
}

// launch starts a program. The caller holds the lock.
func (p *processes) launch(command supervisor.Command) (*supervisor.Process, error) {
	process, err := p.supervisor.Start(command)
	if err == nil {
		p.running[command.Name] = running{command, process}
	}
	return process, err
}

func (p *processes) process(name string) *supervisor.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[name].process
}

// wait calls ready again and again until it returns nil. It returns an error if the program ends or is paused, or if the time is over.
func (p *processes) wait(ctx context.Context, name string, ready func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		last = ready(ctx)
		return last == nil, p.failure(name)
	})
	if err == nil || p.failure(name) != nil {
		return err
	}
	return fmt.Errorf("%s is not ready: %w: %w; the last lines of its log:\n%s", name, err, last, p.process(name).Tail())
}

// failure returns the reason why a program cannot become ready, or nil.
func (p *processes) failure(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused && slices.Contains(controllers, name) {
		return fmt.Errorf("%s is paused: call ResumeControllers first", name)
	}
	return p.running[name].process.Err()
}

// file returns the path of a file in the control plane's folder.
func (p *processes) file(name string) string {
	return filepath.Join(p.supervisor.Folder(), name)
}

func (p *processes) write(name string, content []byte) error {
	return os.WriteFile(p.file(name), content, 0o600)
}

// WriteLogs writes the logs of all programs of Kubernetes, one after the other, each below a line with its name.
func (cp *ControlPlane) WriteLogs(w io.Writer) error {
	for _, name := range []string{etcd, apiserver, controllerManager, scheduler, kwok} {
		content, err := os.ReadFile(cp.processes.file(name + ".log"))
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
		if err == nil || attempt == startAttempts || !mayStartLater(cp.processes.process(apiserver).Tail()) {
			return err
		}
	}
}

// RestartEtcd kills etcd, starts it again with its data, and returns when the API server is ready. Objects are kept.
func (cp *ControlPlane) RestartEtcd(ctx context.Context) error {
	return cp.restart(ctx, etcd)
}

// RestartControllerManager kills kube-controller-manager and starts it again. Its garbage collector then knows all kinds and objects. After
// [ControlPlane.PauseControllers] the new process is paused too. If no controllers run, it returns an error: see [Options.Controllers].
func (cp *ControlPlane) RestartControllerManager(ctx context.Context) error {
	if !cp.options.hasControllers() {
		return errNoControllers
	}
	return cp.restart(ctx, controllerManager)
}

func (cp *ControlPlane) restart(ctx context.Context, name string) error {
	if err := cp.processes.rerun(name); err != nil {
		return err
	}
	return cp.processes.wait(ctx, apiserver, cp.apiServerReady)
}

// Run runs another program, such as an operator, until the control plane stops. Its output goes to <name>.log in the
// control plane's folder, beside the file of [ControlPlane.Kubeconfig]. Two programs may not have the same name.
func (cp *ControlPlane) Run(name, path string, args ...string) (*supervisor.Process, error) {
	return cp.processes.start(supervisor.Command{Name: name, Path: path, Args: args})
}
