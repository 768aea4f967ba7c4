//go:build unix

package supervisor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor/internal/server"
)

// The test program has three roles: it runs the tests, it is the owner of a supervisor, or it is the supervisor.
const (
	roleVariable = "SUPERVISOR_TEST_ROLE"
	ownerRole    = "owner"
	superRole    = "supervisor"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case superRole:
		server.Main()
	case ownerRole:
		own()
	default:
		os.Exit(m.Run())
	}
}

// owned is what an owner reports about its supervisor.
type owned struct {
	Folder string
	PIDs   []int // the supervisor's process id comes first
}

// own starts two servers, and then ends in the way that it reads from standard input. The second server ignores SIGTERM and has a child
// process.
func own() {
	s := must(newSupervisor())
	o := owned{Folder: s.Folder(), PIDs: []int{s.PID()}}
	for _, script := range []string{"exec sleep 1000", "trap '' TERM; sleep 1000 & echo $! > child; wait"} {
		p := must(s.Start(shell(fmt.Sprint("server-", len(o.PIDs)), script, 50*time.Millisecond)))
		o.PIDs = append(o.PIDs, p.PID())
	}
	var child int
	for child == 0 {
		content, _ := os.ReadFile(filepath.Join(s.Folder(), "child"))
		_, _ = fmt.Sscan(string(content), &child)
	}
	o.PIDs = append(o.PIDs, child)
	_ = json.NewEncoder(os.Stdout).Encode(o)

	var ending string
	_, _ = fmt.Scan(&ending)
	switch ending {
	case "panic":
		panic("as the test asked")
	case "exit":
		os.Exit(3)
	case "detach":
		_ = must(0, s.Detach())
	case "stop":
		_ = must(0, s.Stop())
	}
}

func TestOwnerEnds(t *testing.T) {
	for name, end := range map[string]func(*exec.Cmd, owned) string{
		"Stop":                func(*exec.Cmd, owned) string { return "stop" },
		"Return":              func(*exec.Cmd, owned) string { return "return" },
		"Panic":               func(*exec.Cmd, owned) string { return "panic" },
		"Exit":                func(*exec.Cmd, owned) string { return "exit" },
		"SIGKILL":             func(c *exec.Cmd, _ owned) string { return signal(c.Process.Pid, syscall.SIGKILL) },
		"SIGINT":              func(c *exec.Cmd, _ owned) string { return signal(c.Process.Pid, syscall.SIGINT) },
		"SIGTERMToSupervisor": func(_ *exec.Cmd, o owned) string { return signal(o.PIDs[0], syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, stdin, o := startOwner(t)
			fmt.Fprintln(stdin, end(owner, o))
			assertGone(t, o.PIDs...)
			assertRemoved(t, o.Folder)
		})
	}
}

func TestDetach(t *testing.T) {
	owner, stdin, o := startOwner(t)
	fmt.Fprintln(stdin, "detach")
	require.NoError(t, owner.Wait())
	assert.DirExists(t, o.Folder)
	for _, pid := range o.PIDs {
		assert.True(t, alive(pid))
	}

	signal(o.PIDs[0], syscall.SIGTERM)
	assertGone(t, o.PIDs...)
	assertRemoved(t, o.Folder)
}

func startOwner(t *testing.T) (*exec.Cmd, *os.File, owned) {
	t.Helper()
	in, stdin, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(must(os.Executable()))
	cmd.Env = append(os.Environ(), roleVariable+"="+ownerRole)
	cmd.Stdin = in
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	var o owned
	require.NoError(t, json.Unmarshal(line, &o))
	return cmd, stdin, o
}

func TestProcessErr(t *testing.T) {
	s := start(t)
	p, err := s.Start(shell("server", "echo first; echo last; exit 7", 0))
	require.NoError(t, err)
	<-p.Done()
	assert.ErrorContains(t, p.Err(), "server ended: exit status 7")
	assert.ErrorContains(t, p.Err(), "first\nlast")
}

func TestProcessKill(t *testing.T) {
	s := start(t)
	command := shell("server", "exec sleep 1000", time.Minute)
	first, err := s.Start(command)
	require.NoError(t, err)
	require.NoError(t, first.Err())
	require.NoError(t, first.Kill())
	require.ErrorContains(t, first.Err(), "signal: killed")

	second, err := s.Start(command)
	require.NoError(t, err)
	assert.NoError(t, second.Err())
	assert.NotEqual(t, first.PID(), second.PID())
	require.NoError(t, second.Kill())
}

func TestProcessSuspend(t *testing.T) {
	s := start(t)
	p, err := s.Start(shell("server", "while :; do echo line; sleep 0.01; done", 0))
	require.NoError(t, err)
	written := func() int64 {
		log, err := os.Stat(filepath.Join(s.Folder(), "server.log"))
		require.NoError(t, err)
		return log.Size()
	}
	require.NoError(t, eventually(t, func() bool { return written() > 0 }))
	for range 3 {
		require.NoError(t, p.Suspend())
		require.NoError(t, p.Suspend(), "it is suspended already")
		before := written()
		require.NoError(t, p.Err(), "a suspended program has not ended")
		assert.Equal(t, "T", state(t, p.PID()))
		assert.Equal(t, before, written())

		require.NoError(t, p.Resume())
		require.NoError(t, p.Resume(), "it runs already")
		require.NoError(t, eventually(t, func() bool { return written() > before }), "it goes on")
	}
	require.NoError(t, p.Suspend())
	require.NoError(t, p.Kill(), "a suspended program can be killed")
	require.Error(t, p.Suspend())
	require.Error(t, p.Resume())
}

func TestProcessSuspendEnded(t *testing.T) {
	s := start(t)
	p, err := s.Start(shell("server", "exit 7", 0))
	require.NoError(t, err)
	<-p.Done()
	require.EqualError(t, p.Suspend(), "suspend server: the program has ended")
	require.EqualError(t, p.Resume(), "resume server: the program has ended")
	require.ErrorContains(t, p.Err(), "server ended: exit status 7")

	p, err = s.Start(shell("killed", "exec sleep 1000", 0))
	require.NoError(t, err)
	require.NoError(t, p.Suspend())
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL))
	<-p.Done()
	require.EqualError(t, p.Suspend(), "suspend killed: the program has ended", "it was suspended before it was killed")
}

// TestStopSuspended shows that a suspended program receives SIGTERM. Otherwise the test would fail: the grace period is longer than the
// test may run.
func TestStopSuspended(t *testing.T) {
	s, err := newSupervisor()
	require.NoError(t, err)
	var pids []int
	for name, grace := range map[string]time.Duration{"graceful": time.Hour, "killed": 0} {
		p, err := s.Start(shell(name, "exec sleep 1000", grace))
		require.NoError(t, err)
		require.NoError(t, p.Suspend())
		pids = append(pids, p.PID())
	}
	require.NoError(t, s.Stop())
	assertGone(t, pids...)
	assertRemoved(t, s.Folder())
}

// state returns the state of a process. T means that a signal has stopped it.
func state(t *testing.T, pid int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	require.NoError(t, err)
	return string(out[:1])
}

func TestStartMissingProgram(t *testing.T) {
	_, err := start(t).Start(supervisor.Command{Name: "server", Path: "/no/such/program"})
	assert.ErrorContains(t, err, "start server: fork/exec /no/such/program: no such file or directory")
}

func TestStopAfterDetach(t *testing.T) {
	s := start(t)
	p, err := s.Start(shell("server", "exec sleep 1000", 0))
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	require.NoError(t, s.Stop())
	<-p.Done()
	assertGone(t, p.PID())
	_, err = s.Start(shell("server", "exec sleep 1000", 0))
	assert.ErrorContains(t, err, "the supervisor has ended")
}

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

// newSupervisor runs this test program as the supervisor.
func newSupervisor() (*supervisor.Supervisor, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return supervisor.Start(path, roleVariable+"="+superRole, "GORACE=atexit_sleep_ms=0")
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
	return wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 5*time.Minute, true,
		func(context.Context) (bool, error) { return done(), nil })
}

// alive reports whether a process runs. It returns false for a zombie.
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
