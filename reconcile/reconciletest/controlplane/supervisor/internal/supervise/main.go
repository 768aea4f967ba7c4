//go:build unix

// Supervise is the program that package supervisor builds and starts. It is not meant to be run by hand.
package main

import "github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor/internal/server"

func main() { server.Main() }
