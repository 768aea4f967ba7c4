//go:build unix

package supervisor

import "syscall"

// supervisorAttributes returns the attributes of the supervisor process. It is in a process group of its own, so that Ctrl-C reaches only
// the program that started it.
func supervisorAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
