package supervisor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/opblocks/opblocks/internal/controlplane/supervisor"
)

func start(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	s, err := newSupervisor()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Stop())
		assertGone(t, s.PID())
	})
	return s
}

// newSupervisor lets this test program be the supervisor.
func newSupervisor() (*supervisor.Supervisor, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return supervisor.New(path, roleVariable+"="+superRole, "GORACE=atexit_sleep_ms=0")
}

func shell(name, script string, grace time.Duration) supervisor.Command {
	return supervisor.Command{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Grace: grace}
}

func signal(pid int, s syscall.Signal) string {
	_ = syscall.Kill(pid, s)
	return ""
}

func assertGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		assert.NoError(t, eventually(t, func() bool { return !alive(pid) }), "process %d is still there", pid)
	}
}

func assertRemoved(t *testing.T, path string) {
	t.Helper()
	assert.NoError(t, eventually(t, func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err)
	}), "%s is still there", path)
}

func eventually(t *testing.T, done func() bool) error {
	return wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) { return done(), nil })
}

// alive does not count a process that has ended but whose parent has not noticed.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
