package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// settings are the values of the flags.
type settings struct {
	options controlplane.Options
	detach  bool
}

func startFlags() (*flag.FlagSet, *settings) {
	s := &settings{}
	set := newFlags()
	set.BoolVar(&s.options.Controllers, "controllers", false, "also run kube-controller-manager, kube-scheduler and three simulated nodes")
	set.Func("nodes", "run the controllers and this `number` of simulated nodes; with 0 every pod stays Pending", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return errors.New("name a number of 0 or more")
		}
		s.options.Nodes = &n
		return nil
	})
	set.Func("crds", "install the CustomResourceDefinitions of this `path`, a file or a folder; may be repeated", func(path string) error {
		s.options.CRDs = append(s.options.CRDs, path)
		return nil
	})
	set.StringVar(&s.options.Version, "kubernetes", "", "run this `version` of Kubernetes, such as v1.34.4, instead of the pinned one")
	set.BoolVar(&s.detach, "detach", false, "keep it running in the background, until: kill $CONTROLPLANE_PID")
	return set, s
}

// start starts a control plane, and runs a command or waits.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set, s := startFlags()
	if err := parse(set, args); err != nil {
		return err
	}
	command, err := commandOf(set, args)
	if err != nil {
		return err
	}
	if len(command) > 0 && s.detach {
		return usageError{errors.New("-detach and a command exclude each other: the control plane ends with the command")}
	}
	assets, err := controlplane.Build(ctx, s.options)
	if err != nil {
		return err
	}
	cp, err := controlplane.Start(ctx, s.options)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		return errors.Join(execute(cp, assets, command, stdout, stderr), cp.Stop())
	}
	fmt.Fprintf(stdout, "export KUBECONFIG=%s\nexport KUBEBUILDER_ASSETS=%s\n", quote(cp.Kubeconfig()), quote(assets))
	if s.detach {
		pid, err := cp.Detach()
		if err != nil {
			return errors.Join(err, cp.Stop())
		}
		fmt.Fprintf(stdout, "export CONTROLPLANE_PID=%d\n", pid)
		return nil
	}
	fmt.Fprintf(stderr, "controlplane: %s runs until Ctrl-C; use the lines above in another shell\n", cp.Config().Host)
	<-ctx.Done()
	return cp.Stop()
}

// commandOf returns the command that follows -- in args. set must have parsed args. Without a command it returns nil. If words are
// left without --, it returns a usageError: otherwise a mistyped subcommand would be run as a command.
func commandOf(set *flag.FlagSet, args []string) ([]string, error) {
	command := set.Args()
	parsed := len(args) - len(command) // includes the --, which ends the flags
	separated := parsed > 0 && args[parsed-1] == "--"
	switch {
	case separated && len(command) == 0:
		return nil, usageError{errors.New("name a command after --")}
	case !separated && len(command) > 0:
		return nil, usageError{fmt.Errorf("unknown command %s: subcommands come first, and a command to run follows --", command[0])}
	}
	return command, nil
}

// execute runs a command with the rights of a cluster administrator. If kubectl is in PATH, the command gets that one, and not the built
// one.
func execute(cp *controlplane.ControlPlane, assets string, command []string, stdout, stderr io.Writer) error {
	for name, value := range map[string]string{
		"KUBECONFIG": cp.Kubeconfig(), "KUBEBUILDER_ASSETS": assets,
		"PATH": os.Getenv("PATH") + string(filepath.ListSeparator) + assets,
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGTERM { // on Ctrl-C, the terminal also interrupts the command
					_ = cmd.Process.Signal(s)
				}
			case <-ended:
				return
			}
		}
	}()
	return cmd.Wait()
}

// quote returns a text as one word of a shell command.
func quote(text string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%"
	if text != "" && strings.Trim(text, safe) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
