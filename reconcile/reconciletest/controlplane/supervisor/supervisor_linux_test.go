package supervisor_test

import (
	"os"
	"syscall"
	"testing"
)

// TestSupervisorKilled proves that the parent-death signal ends the servers. Nothing removes the folder then, nor
// ends the processes that the servers started.
func TestSupervisorKilled(t *testing.T) {
	_, _, o := startOwner(t)
	t.Cleanup(func() {
		signal(o.PIDs[3], syscall.SIGKILL)
		_ = os.RemoveAll(o.Folder)
	})
	signal(o.PIDs[0], syscall.SIGKILL)
	assertGone(t, o.PIDs[:3]...)
}
