package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/opblocks/opblocks/internal/controlplane/supervisor"
)

// The programs, by their names in package programs.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

const (
	pollInterval   = 25 * time.Millisecond
	attemptTimeout = 3 * time.Second // what listens on a port that somebody else took may never answer
)

// running is a program and how to start it again.
type running struct {
	command supervisor.Command
	process *supervisor.Process
}

// run starts a program; it is not ready yet.
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
	return cp.launch(before.command)
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

// wait asks again and again until ready returns nil, the program ends, or the time is over.
func (cp *ControlPlane) wait(ctx context.Context, name string, ready func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		last = ready(ctx)
		return last == nil, cp.process(name).Err()
	})
	if err == nil || cp.process(name).Err() != nil {
		return err
	}
	return fmt.Errorf("%s is not ready: %w: %w; the last lines of its log:\n%s", name, err, last, cp.process(name).Tail())
}

// file is the path of a file in the control plane's folder.
func (cp *ControlPlane) file(name string) string {
	return filepath.Join(cp.supervisor.Folder(), name)
}

func (cp *ControlPlane) write(name string, content []byte) error {
	return os.WriteFile(cp.file(name), content, 0o600)
}

// WriteLogs writes what each program has printed so far.
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
