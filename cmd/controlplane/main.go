// Controlplane starts a real Kubernetes control plane on this machine for a shell, without containers:
//
//	go run github.com/opblocks/opblocks/cmd/controlplane@latest -controllers -crds config/crd/bases
//
// It prints lines such as `export KUBECONFIG=…`, and runs until it is interrupted. If a command follows after --, it runs that command with
// KUBECONFIG set, and stops the control plane when the command has ended:
//
//	go run github.com/opblocks/opblocks/cmd/controlplane@latest -- make test
//
// The flag -h lists the rest. Tests use package controlplane.
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
	"syscall"
)

const usage = `controlplane starts a real Kubernetes control plane on this machine, in seconds and without containers: etcd and
kube-apiserver, and with -controllers also kube-controller-manager, kube-scheduler and simulated nodes.

  controlplane [flags]
        starts one, prints KUBECONFIG and KUBEBUILDER_ASSETS for another shell, and runs until Ctrl-C
  controlplane [flags] -- command [arguments]
        runs the command that follows -- with these variables, and stops the control plane when the command has ended
  eval "$(controlplane -detach [flags])"
        starts one for this shell, which runs until: kill $CONTROLPLANE_PID
  controlplane build [-kubernetes version]
        builds the programs only, and prints KUBEBUILDER_ASSETS: a folder for envtest
  controlplane kubeconfig namespace/name
        prints a kubeconfig with the rights of a ServiceAccount, valid for 24 hours, in the cluster that KUBECONFIG names

The first start builds the programs from their Go modules into the user's cache, once for each version of Kubernetes.
This takes some minutes and needs the network.

Flags:
`

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is an error about wrong arguments.
type usageError struct{ error }

// run returns the exit code. If a command has run, it is the command's exit code. Otherwise it is 2 for wrong arguments, 130 after an
// interrupt, and 1 for any other error.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, args, stdout, stderr)
	var wrong usageError
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		help(stdout)
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "controlplane: %v; see controlplane -h\n", err)
		return 2
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "controlplane: interrupted; nothing is left behind")
		return 130
	default:
		fmt.Fprintf(stderr, "controlplane: %v\n", err)
		return 1
	}
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "build":
			return build(ctx, args[1:], stdout)
		case "kubeconfig":
			return kubeconfig(ctx, args[1:], stdout)
		}
	}
	return start(ctx, args, stdout, stderr)
}

func help(w io.Writer) {
	set, _ := startFlags()
	set.SetOutput(w)
	fmt.Fprint(w, usage)
	set.PrintDefaults()
}

// newFlags returns a flag set that does not print errors or help itself.
func newFlags() *flag.FlagSet {
	set := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// parse parses arguments. Its error is flag.ErrHelp or a usageError.
func parse(set *flag.FlagSet, args []string) error {
	err := set.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageError{err}
}
