//go:build !unix

package supervisor

import "syscall"

// supervisorAttributes returns no attributes. The supervisor's program is not built for this operating system.
func supervisorAttributes() *syscall.SysProcAttr { return nil }
