// Build builds the programs of the control plane that are missing into the user's cache, and prints the path of their
// folder:
//
//	go run ./reconcile/reconciletest/controlplane/internal/build
//
// It does the same as `go run ./cmd/controlplane build`, but imports much less. So on a machine on which nothing is compiled yet, the
// build of the control plane starts earlier.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/internal/programs"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	folder, err := build(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "opblocks:", err)
		os.Exit(1)
	}
	fmt.Println(folder)
}

func build(ctx context.Context) (folder string, err error) {
	if err := supervisor.Build(ctx); err != nil {
		return "", err
	}
	if _, err := programs.Ensure(ctx, "", programs.Names()...); err != nil {
		return "", err
	}
	return programs.Assets(ctx, "")
}
