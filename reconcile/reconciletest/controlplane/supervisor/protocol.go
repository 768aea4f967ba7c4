package supervisor

import "time"

// Command is a program to run under the supervisor. Its output goes to <folder>/<Name>.log.
type Command struct {
	Name string   // such as etcd, in messages and for the log file
	Path string   // of the executable
	Args []string // without the name of the program
	Env  []string // in addition to the environment of the process that called New

	// Grace is the time between SIGTERM and SIGKILL when the program is stopped. With zero it is killed at once, which is
	// right for a server whose data is removed with the folder.
	Grace time.Duration
}

// hello is the first line that the supervisor writes.
type hello struct {
	Folder string
	Error  string
}

// request is a request of the owner. There is one at a time. Exactly one field is set.
type request struct {
	Start  *Command
	Kill   int
	Detach bool
}

// event is the answer to a request, or, if Exited is set, the end of a program.
type event struct {
	PID    int
	Error  string
	Exited int
	Status string
}
