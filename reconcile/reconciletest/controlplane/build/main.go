// Build builds the programs of the control plane that are missing or out of date into bin/k8s:
//
//	go run ./reconcile/reconciletest/controlplane/build
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	_, err := programs.Ensure(ctx, programs.Names()...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
