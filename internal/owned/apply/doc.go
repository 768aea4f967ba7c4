// Package apply brings one object to its desired state. [Applier.Begin] is where to begin: it reads the live object, asks
// package plan what is done next, finds out the facts that the plan needs, executes it, and remembers the answer.
package apply
