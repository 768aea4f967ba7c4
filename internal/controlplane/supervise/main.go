// Supervise is the program that owns the servers of package supervisor; nobody needs to call it by hand.
package main

import "github.com/opblocks/opblocks/internal/controlplane/supervisor"

func main() { supervisor.Main() }
