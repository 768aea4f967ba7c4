package controlplane

import (
	"context"
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

const pollInterval = 25 * time.Millisecond

// run starts a program; it is not ready yet.
func (cp *ControlPlane) run(name string, args ...string) error {
	cp.commands[name] = supervisor.Command{Name: name, Path: cp.programs[name], Args: args}
	return cp.rerun(name)
}

func (cp *ControlPlane) rerun(name string) error {
	process, err := cp.supervisor.Start(cp.commands[name])
	if err == nil {
		cp.running[name] = process
	}
	return err
}

// wait asks again and again until ready returns nil, the program ends, or the time is over.
func (cp *ControlPlane) wait(ctx context.Context, name string, ready func(context.Context) error) error {
	process := cp.running[name]
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = ready(ctx)
		return last == nil, process.Err()
	})
	if err == nil || process.Err() != nil {
		return err
	}
	return fmt.Errorf("%s is not ready after %s: %w; the last lines of its log:\n%s", name, startTimeout, last, process.Tail())
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
		if cp.running[name] == nil {
			continue
		}
		content, err := os.ReadFile(cp.file(name + ".log"))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "==> %s <==\n%s\n", name, content); err != nil {
			return err
		}
	}
	return nil
}
