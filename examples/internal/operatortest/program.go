package operatortest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/launch"
	"github.com/opblocks/opblocks/internal/buildfolder"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// Program is the program of an example. It runs with the permissions of the operator's ServiceAccount.
type Program struct{ path, kubeconfig string }

// Build compiles the program of the example, which runs with the permissions of the operator. The edits make another version of the program.
func (i *Installation) Build(t testing.TB, edits ...launch.SourceEdit) *Program {
	t.Helper()
	folder := t.TempDir()
	p := &Program{kubeconfig: filepath.Join(folder, "kubeconfig")}
	content, err := controlplane.MarshalKubeconfig(i.Access(t))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.kubeconfig, content, 0o600))
	if len(edits) == 0 {
		p.path = Compile(t)
		return p
	}
	built, release, err := buildfolder.Open(i.Name + "-operator-edited")
	require.NoError(t, err)
	t.Cleanup(release)
	overlay, err := launch.Overlay(folder, edits...)
	require.NoError(t, err)
	p.path, err = compile(built, "-overlay="+overlay)
	require.NoError(t, err)
	return p
}

// Plan runs the program with -plan, and returns its exit code and what it prints.
func (p *Program) Plan(t testing.TB, format string, args ...string) (exit int, output string) {
	t.Helper()
	var printed, log bytes.Buffer
	c := p.command(t.Context(), append(args, "-plan="+format)...)
	c.Stdout, c.Stderr = &printed, &log
	err := c.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		require.NoError(t, err)
	}
	t.Logf("%s\n%s", &log, &printed)
	return c.ProcessState.ExitCode(), printed.String()
}

// Start starts the operator. The returned function ends it, as the end of the test does.
func (p *Program) Start(t testing.TB, args ...string) (stop func()) {
	t.Helper()
	c := p.command(context.Background(), append(args, "-metrics-bind-address=0", "-health-probe-bind-address=0")...)
	require.NoError(t, c.Start())
	ended := false
	stop = func() {
		if !ended {
			ended = true
			require.NoError(t, c.Process.Signal(syscall.SIGTERM))
			require.NoError(t, c.Wait())
		}
	}
	t.Cleanup(stop)
	return stop
}

func (p *Program) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, p.path, args...)
	c.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	return c
}

// AssertPlans runs the operator while act creates objects and waits until they are settled. Then a plan of the same version has no changes,
// and after drift it has some. The exit codes of the program say so.
func (i *Installation) AssertPlans(t testing.TB, act, drift func()) {
	t.Helper()
	p, namespace := i.Build(t), "-namespaces="+i.Namespace
	stop := p.Start(t, namespace)
	act()
	stop()
	exit, out := p.Plan(t, "text", namespace)
	require.Zero(t, exit, out)
	drift()
	exit, out = p.Plan(t, "markdown", namespace)
	require.Equal(t, 3, exit, out)
}
