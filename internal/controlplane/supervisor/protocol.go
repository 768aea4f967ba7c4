package supervisor

import "time"

// Command is a program to run under the supervisor. What it prints goes to <folder>/<Name>.log.
type Command struct {
	Name string
	Path string
	Args []string
	Env  []string // in addition to the environment of the process that called New

	// Grace is the time between SIGTERM and SIGKILL when the program is stopped. Zero kills at once, which is right
	// for a server whose data goes with the folder.
	Grace time.Duration
}

// hello is the supervisor's first line.
type hello struct {
	Folder string
	Error  string
}

// request is what the owner asks for, one at a time; exactly one field is set.
type request struct {
	Start  *Command
	Kill   int
	Detach bool
}

// event answers a request, or, where Exited is set, tells that a program has ended.
type event struct {
	PID    int
	Error  string
	Exited int
	Status string
}
