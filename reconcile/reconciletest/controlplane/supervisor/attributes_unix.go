//go:build unix

package supervisor

import "syscall"

// supervisorAttributes returns the attributes of the supervisor process: Ctrl-C reaches its owner only.
func supervisorAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
