package supervisor_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/controlplane/supervisor"
)

// The test program plays all parts: the tests, the owner of a supervisor, and the supervisor.
const (
	roleVariable = "SUPERVISOR_TEST_ROLE"
	ownerRole    = "owner"
	superRole    = "supervisor"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case superRole:
		supervisor.Main()
	case ownerRole:
		own()
	default:
		os.Exit(m.Run())
	}
}

// owned is what the owner tells about its supervisor.
type owned struct {
	Folder string
	PIDs   []int // the supervisor's first
}

// own starts two servers, one of which ignores SIGTERM and has a child of its own, and then ends as it is told.
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

func TestNothingOutlivesTheOwner(t *testing.T) {
	for name, end := range map[string]func(*exec.Cmd, owned) string{
		"stops":                     func(*exec.Cmd, owned) string { return "stop" },
		"returns":                   func(*exec.Cmd, owned) string { return "return" },
		"panics":                    func(*exec.Cmd, owned) string { return "panic" },
		"exits":                     func(*exec.Cmd, owned) string { return "exit" },
		"SIGKILL":                   func(c *exec.Cmd, _ owned) string { return signal(c.Process.Pid, syscall.SIGKILL) },
		"SIGINT":                    func(c *exec.Cmd, _ owned) string { return signal(c.Process.Pid, syscall.SIGINT) },
		"SIGTERM to the supervisor": func(_ *exec.Cmd, o owned) string { return signal(o.PIDs[0], syscall.SIGTERM) },
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

func TestDetachedServersOutliveTheOwner(t *testing.T) {
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

func TestExitIsNoticed(t *testing.T) {
	s := start(t)
	p, err := s.Start(shell("server", "echo first; echo last; exit 7", 0))
	require.NoError(t, err)
	<-p.Done()
	assert.ErrorContains(t, p.Err(), "server ended: exit status 7")
	assert.ErrorContains(t, p.Err(), "first\nlast")
}

func TestKilledServerCanStartAgain(t *testing.T) {
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

func TestMissingProgram(t *testing.T) {
	_, err := start(t).Start(supervisor.Command{Name: "server", Path: "/no/such/program"})
	assert.ErrorContains(t, err, "start server: fork/exec /no/such/program: no such file or directory")
}

func TestStopEndsWhatIsDetached(t *testing.T) {
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
