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
