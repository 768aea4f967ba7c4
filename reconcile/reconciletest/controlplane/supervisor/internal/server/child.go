//go:build unix

package server

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

var errEnded = errors.New("the program has ended")

// child is a program that the supervisor has started. It is the leader of a process group.
type child struct {
	cmd   *exec.Cmd
	pid   int
	grace time.Duration
	done  chan struct{}

	suspended bool
}

func startChild(c Command, folder string) (*child, error) {
	log, err := os.OpenFile(filepath.Join(folder, c.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = childAttributes()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd: cmd, pid: cmd.Process.Pid, grace: c.Grace, done: make(chan struct{})}, nil
}

// wait waits until the program has ended, and then kills the processes that the program has started.
func (c *child) wait() {
	_ = c.cmd.Wait()
	c.signal(syscall.SIGKILL)
	close(c.done)
}

// status returns how the program ended, for example "exit status 1".
func (c *child) status() string {
	if c.cmd.ProcessState == nil { // suspend has received the end of the process
		return "while it was being suspended"
	}
	return c.cmd.ProcessState.String()
}

// hasEnded reports whether the program has ended. After that its process id may belong to another process.
func (c *child) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(-c.pid, s) }

// suspend stops the threads of the program, and returns when all have stopped. Processes that the program has started go on running. If the
// program is starting a process by vfork at this moment, it stops only when that process has begun.
func (c *child) suspend() error {
	if c.hasEnded() {
		return errEnded
	}
	if c.suspended {
		return nil // a second SIGSTOP changes nothing, so wait4 would wait for ever
	}
	_ = syscall.Kill(c.pid, syscall.SIGSTOP)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			return errEnded
		}
		c.suspended = true
		return nil
	}
}

// resume continues a suspended program.
func (c *child) resume() error {
	if c.hasEnded() {
		return errEnded
	}
	_ = syscall.Kill(c.pid, syscall.SIGCONT)
	c.suspended = false
	return nil
}

func (c *child) stop() {
	if c.grace > 0 {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		_ = c.resume() // while it is suspended, a program does not receive SIGTERM
		select {
		case <-c.done:
		case <-time.After(c.grace):
		}
	}
	c.kill()
}

// kill kills the program and its process group. If the program has ended, kill does nothing.
func (c *child) kill() {
	if c.hasEnded() {
		return
	}
	c.signal(syscall.SIGKILL)
	select {
	case <-c.done:
	case <-time.After(5 * time.Second): // the process is stuck in the kernel, and nothing can end it
	}
}
