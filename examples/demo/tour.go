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

	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/supervisor"
)

const (
	patience = time.Minute
	interval = 200 * time.Millisecond
)

// program is something that a user would type, without its name.
type program func(ctx context.Context, args ...string) (output string, err error)

// tour prints what is done and what comes of it. After an error it does nothing more.
type tour struct {
	ctx       context.Context
	cp        *controlplane.ControlPlane
	operators []*supervisor.Process
	databases []*database
	style     style
	err       error
}

func newTour(ctx context.Context) *tour { return &tour{ctx: ctx, style: styleOf(os.Stdout)} }

func (t *tour) title(text string) {
	if t.err == nil {
		fmt.Printf("\n%s\n", t.style.bold("── "+text+" "+strings.Repeat("─", max(0, 76-len(text)))))
	}
}

func (t *tour) say(text string) {
	if t.err == nil {
		fmt.Println("\n" + wrap(text, 80))
	}
}

// kubectl runs a command and shows it with its output.
func (t *tour) kubectl(args ...string) {
	if t.err != nil {
		return
	}
	t.command("kubectl", args...)
	out, err := t.cp.Kubectl(t.ctx, args...)
	t.output(out)
	t.err = err
}

// until runs kubectl again and again until its output is as expected, and then shows it.
func (t *tour) until(expected string, as func(output string) error, args ...string) {
	t.untilOf("kubectl", t.cp.Kubectl, expected, as, args...)
}

// untilOf does so with any program.
func (t *tour) untilOf(name string, run program, expected string, as func(output string) error, args ...string) {
	if t.err != nil {
		return
	}
	t.command(name, args...)
	began := time.Now()
	for {
		out, err := run(t.ctx, args...)
		if err == nil {
			err = as(out)
		}
		if err == nil {
			t.output(out)
			t.succeeded(expected, began)
			return
		}
		if fatal := errors.Join(t.ctx.Err(), t.ended()); fatal != nil || time.Since(began) > patience {
			t.output(out)
			t.err = cmp.Or(fatal, fmt.Errorf("expected within %v that %s, but %w", patience, expected, err))
			return
		}
		select {
		case <-t.ctx.Done():
		case <-time.After(interval):
		}
	}
}

// ended is why an operator does not run any more.
func (t *tour) ended() error {
	for _, o := range t.operators {
		if err := o.Err(); err != nil {
			return fmt.Errorf("the operator should still run, but %w", err)
		}
	}
	return nil
}

// runOperator builds an example's operator and runs it on this machine as its ServiceAccount, with flags of its own.
func (t *tour) runOperator(example, namespace, account string, flags ...string) {
	if t.err != nil {
		return
	}
	binary := t.file(example + "-operator")
	build := exec.CommandContext(t.ctx, "go", "build", "-buildvcs=false", "-o", binary, "./"+example)
	build.Dir = "examples"
	build.Stderr = os.Stderr
	began := time.Now()
	if err := build.Run(); err != nil {
		t.err = fmt.Errorf("build the operator: %w", err)
		return
	}
	kubeconfig, err := t.accessOf(namespace, account)
	if err != nil {
		t.err = err
		return
	}
	args := append([]string{"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"}, flags...)
	t.command(example+"-operator", args...)
	operator, err := t.cp.Run(fmt.Sprintf("%s-operator-%d", example, len(t.operators)+1), binary, args...)
	if err != nil {
		t.err = err
		return
	}
	t.operators = append(t.operators, operator)
	t.succeeded("it is built and runs", began)
}

func (t *tour) showLogs() {
	for _, o := range t.operators {
		if o.Err() != nil {
			continue // which says it all
		}
		fmt.Fprintf(os.Stderr, "\nThe last lines that the operator logged:\n%s\n", o.Tail())
	}
}

// leave says how to go on with what is left running.
func (t *tour) leave() error {
	pid, err := t.cp.Detach()
	kubectl := "kubectl"
	if _, err := exec.LookPath(kubectl); err != nil {
		kubectl, _ = filepath.Abs("bin/k8s/kubectl")
	}
	fmt.Printf("\nThe control plane and its operators keep running. To look around:\n\n"+
		"    export KUBECONFIG=%s\n    %s get pods --all-namespaces\n", t.cp.Kubeconfig(), kubectl)
	pids := []string{strconv.Itoa(pid)}
	for _, d := range t.databases {
		pid, detached := d.server.Detach()
		err = errors.Join(err, detached)
		pids = append(pids, strconv.Itoa(pid))
		fmt.Printf("    mariadb %s # the database %s\n", strings.Join(d.root(), " "), d.name)
	}
	fmt.Printf("\nTo stop them, and remove their files:\n\n    kill %s\n", strings.Join(pids, " "))
	return err
}

// stop ends what runs. Nothing is left of it.
func (t *tour) stop() error {
	err := t.cp.Stop()
	for _, d := range t.databases {
		err = errors.Join(err, d.server.Stop())
	}
	return err
}

// file is a path among the control plane's files, with which it goes.
func (t *tour) file(name string) string { return filepath.Join(filepath.Dir(t.cp.Kubeconfig()), name) }
