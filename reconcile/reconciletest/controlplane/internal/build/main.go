// Build builds the programs of the control plane that are missing into the user's cache, and prints the path of their
// folder:
//
//	go run ./reconcile/reconciletest/controlplane/internal/build
//
// It does what `go run ./cmd/controlplane build` does. It imports much less, so a machine on which nothing is compiled
// yet starts to build the control plane earlier.
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
