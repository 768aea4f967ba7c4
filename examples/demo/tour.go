package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opblocks/opblocks/examples/demo/style"
	"github.com/opblocks/opblocks/examples/internal/launch"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

const (
	patience = 3 * time.Minute // on a busy machine
	interval = 200 * time.Millisecond
)

// program runs a command, given its arguments, and returns its output.
type program func(ctx context.Context, args ...string) (output string, err error)

// tour runs commands and prints them with their output. After an error it does nothing more.
type tour struct {
	ctx       context.Context
	cp        *controlplane.ControlPlane
	builds    *launch.Builds
	operators []*supervisor.Process
	started   int // how many operators were started
	databases []*database
	printer   style.Printer
	err       error
}

func newTour(ctx context.Context) *tour { return &tour{ctx: ctx, printer: style.New()} }

func (t *tour) title(text string) {
	if t.err == nil {
		t.printer.Title(text)
	}
}

func (t *tour) say(text string) {
	if t.err == nil {
		t.printer.Say(text)
	}
}

// kubectl runs kubectl and prints the command and its output.
func (t *tour) kubectl(args ...string) {
	if t.err != nil {
		return
	}
	t.printer.Command("kubectl", args...)
	out, err := t.cp.Kubectl(t.ctx, args...)
	t.printer.Output(out)
	t.err = err
}

// until runs kubectl again and again until check accepts its output, and prints the command and this output. expected says in
// words what the output shows.
func (t *tour) until(expected string, check func(output string) error, args ...string) {
	t.untilOf("kubectl", t.cp.Kubectl, expected, check, args...)
}

// untilOf is until for any program.
func (t *tour) untilOf(name string, run program, expected string, check func(output string) error, args ...string) {
	if t.err != nil {
		return
	}
	t.printer.Command(name, args...)
	began := time.Now()
	for {
		out, err := run(t.ctx, args...)
		if err == nil {
			err = check(out)
		}
		if err == nil {
			t.printer.Output(out)
			t.printer.Succeeded(expected, began)
			return
		}
		if fatal := errors.Join(t.ctx.Err(), t.ended()); fatal != nil || time.Since(began) > patience {
			t.printer.Output(out)
			t.err = cmp.Or(fatal, fmt.Errorf("expected within %v that %s, but %w", patience, expected, err))
			return
		}
		select {
		case <-t.ctx.Done():
		case <-time.After(interval):
		}
	}
}

// ended returns an error if an operator has ended.
func (t *tour) ended() error {
	for _, o := range t.operators {
		if err := o.Err(); err != nil {
			return fmt.Errorf("the operator should still run, but %w", err)
		}
	}
	return nil
}

// buildOperators begins to build the operators of chapters, so that operators of later chapters are built during
// earlier ones.
func (t *tour) buildOperators(selected []chapter) {
	t.builds = launch.BuildAll(t.ctx, filepath.Dir(t.cp.Kubeconfig()), examplesOf(selected)...)
}

// runOperator runs the operator of an example on this machine, with the permissions of its ServiceAccount.
func (t *tour) runOperator(example, namespace, account string, flags ...string) {
	if t.err != nil {
		return
	}
	binary, err := t.builds.Wait(example)
	if err != nil {
		t.err = err
		return
	}
	t.run(example+"-operator", binary, namespace, account, flags...)
}

// run runs an operator's program, which is printed by a name.
func (t *tour) run(name, binary, namespace, account string, flags ...string) {
	began := time.Now()
	kubeconfig, err := launch.Access(t.ctx, t.cp, namespace, account, "")
	if err != nil {
		t.err = err
		return
	}
	args := append([]string{"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"}, flags...)
	t.printer.Command(name, args...)
	t.started++
	operator, err := t.cp.Run(fmt.Sprintf("%s-%d", name, t.started), binary, args...)
	if err != nil {
		t.err = err
		return
	}
	t.operators = append(t.operators, operator)
	t.printer.Succeeded("the operator runs", began)
}

// planNext builds an operator of another version, and prints what it would change. check accepts the plan.
func (t *tour) planNext(example string, edit launch.SourceEdit, check func(output string) error) {
	if t.err != nil {
		return
	}
	began := time.Now()
	overlay, err := launch.Overlay(filepath.Dir(t.cp.Kubeconfig()), edit)
	if err != nil {
		t.err = err
		return
	}
	next := t.file(example + "-operator-next")
	if t.err = launch.Build(t.ctx, example, next, "-overlay="+overlay); t.err != nil {
		return
	}
	args := []string{"--kubeconfig=" + t.cp.Kubeconfig(), "-plan=text"}
	t.printer.Command(filepath.Base(next), args...)
	plan := exec.CommandContext(t.ctx, next, args...)
	plan.Stderr = os.Stderr
	out, err := plan.Output()
	t.printer.Output(string(out))
	exit, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case exit == nil || exit.ExitCode() != 3:
		t.err = fmt.Errorf("a plan with changes should end with exit code 3: %w", cmp.Or(err, errors.New("it ended with 0")))
	default:
		t.err = check(string(out))
	}
	if t.err == nil {
		t.printer.Succeeded("the exit code is 3: there are changes", began)
	}
}

func (t *tour) showLogs() {
	for _, o := range t.operators {
		if o.Err() != nil {
			continue // its error contains the log
		}
		fmt.Fprintf(os.Stderr, "\nThe last lines that the operator logged:\n%s\n", o.Tail())
	}
}

// leave prints how to use and stop what keeps running.
func (t *tour) leave() error {
	pid, err := t.cp.Detach()
	kubectl := "kubectl"
	if _, err := exec.LookPath(kubectl); err != nil {
		kubectl, _ = filepath.Abs("bin/k8s/kubectl")
	}
	fmt.Printf("\nThe control plane and the operators keep running. To use them:\n\n"+
		"    export KUBECONFIG=%s\n    %s get pods --all-namespaces\n", t.cp.Kubeconfig(), kubectl)
	pids := []string{strconv.Itoa(pid)}
	for _, d := range t.databases {
		pid, detached := d.server.Detach()
		err = errors.Join(err, detached)
		pids = append(pids, strconv.Itoa(pid))
		fmt.Printf("    mariadb %s # the database %s\n", strings.Join(d.root(), " "), d.name)
	}
	fmt.Printf("\nTo stop them and remove their files:\n\n    kill %s\n", strings.Join(pids, " "))
	return err
}

// stop stops all that runs, and removes its files.
func (t *tour) stop() error {
	err := t.cp.Stop()
	for _, d := range t.databases {
		err = errors.Join(err, d.server.Stop())
	}
	return err
}

// file returns a path in the folder of the control plane, which is removed with it.
func (t *tour) file(name string) string { return filepath.Join(filepath.Dir(t.cp.Kubeconfig()), name) }
