package supervisor_test

import (
	"os"
	"syscall"
	"testing"
)

// TestSupervisorKilled shows that the parent-death signal ends the servers. Then nothing removes the folder, and nothing ends the processes
// that the servers have started.
func TestSupervisorKilled(t *testing.T) {
	_, _, o := startOwner(t)
	t.Cleanup(func() {
		signal(o.PIDs[3], syscall.SIGKILL)
		_ = os.RemoveAll(o.Folder)
	})
	signal(o.PIDs[0], syscall.SIGKILL)
	assertGone(t, o.PIDs[:3]...)
}
