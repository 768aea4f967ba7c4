// Package server is the supervisor process, which package supervisor starts. It imports the standard library only,
// because its files are compiled in a module of their own.
package server

import "time"

// Command is a program to run. Its output goes to <folder>/<Name>.log.
type Command struct {
	Name  string
	Path  string
	Args  []string
	Env   []string      // in addition to the environment of the supervisor process
	Grace time.Duration // between SIGTERM and SIGKILL
}

// Hello is the first line that the supervisor writes.
type Hello struct {
	Folder string
	Error  string
}

// Request is a request of the owner. There is one at a time. Exactly one field is set.
type Request struct {
	Start   *Command
	Kill    int
	Suspend int
	Resume  int
	Detach  bool
}

// Event is the answer to a request, or, if Exited is set, the end of a program.
type Event struct {
	PID    int
	Error  string
	Exited int
	Status string
}
