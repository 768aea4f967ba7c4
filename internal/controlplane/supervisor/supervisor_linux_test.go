package supervisor_test

import (
	"os"
	"syscall"
	"testing"
)

// The parent-death signal ends the servers. Nobody is left for the folder and for what the servers themselves started.
func TestNoProcessOutlivesAKilledSupervisor(t *testing.T) {
	_, _, o := startOwner(t)
	t.Cleanup(func() {
		signal(o.PIDs[3], syscall.SIGKILL)
		_ = os.RemoveAll(o.Folder)
	})
	signal(o.PIDs[0], syscall.SIGKILL)
	assertGone(t, o.PIDs[:3]...)
}
