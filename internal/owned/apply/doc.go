// Package apply brings one object to its desired state. [Applier.Begin] is where to begin reading: it reads the live object, asks package
// plan what to do next, finds out what the plan still has to know, executes the plan, and remembers the API server's answer.
package apply
