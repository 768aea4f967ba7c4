// Package server is the code of the supervisor process, which package supervisor starts. It imports only the standard library, because its
// files are compiled in a module of their own.
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

// Request is a request of the owner: the program that has started the supervisor. The owner sends one at a time. Exactly one field is set.
type Request struct {
	Start   *Command
	Kill    int
	Suspend int
	Resume  int
	Detach  bool
}

// Event is the answer to a request. If Exited is set, it says that a program has ended.
type Event struct {
	PID    int
	Error  string
	Exited int
	Status string
}
