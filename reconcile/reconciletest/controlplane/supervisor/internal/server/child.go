//go:build unix

package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// child is a program that the supervisor started, the leader of a process group.
type child struct {
	cmd   *exec.Cmd
	pid   int
	grace time.Duration
	done  chan struct{}
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

// wait returns when the program has ended, and kills the processes that it started.
func (c *child) wait() {
	_ = c.cmd.Wait()
	c.signal(syscall.SIGKILL)
	close(c.done)
}

func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(-c.pid, s) }

func (c *child) stop() {
	if c.grace > 0 {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(c.grace):
		}
	}
	c.kill()
}

// kill does nothing if the program has ended: its process id may belong to another process by now.
func (c *child) kill() {
	select {
	case <-c.done:
		return
	default:
		c.signal(syscall.SIGKILL)
	}
	select {
	case <-c.done:
	case <-time.After(5 * time.Second): // stuck in the kernel: nothing more can be done
	}
}
