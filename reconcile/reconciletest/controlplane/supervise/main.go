// Supervise is the program that package supervisor starts. It is not meant to be run by hand.
package main

import "github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"

func main() { supervisor.Main() }
