package supervisor

import "time"

// Command is a program to run under the supervisor. Its output goes to <folder>/<Name>.log.
type Command struct {
	Name string   // the name in messages and of the log file, such as etcd
	Path string   // the path of the executable
	Args []string // the arguments, without the name of the program
	Env  []string // variables in addition to the environment of the process that called New

	// Grace is the time between SIGTERM and SIGKILL when the program is stopped. If it is zero, the program is killed at once. That is
	// right for a server whose data is in the folder, and is removed with it.
	Grace time.Duration
}
