// Package supervisor runs servers that must not outlive the program that started them.
//
// [New] starts a supervisor process, which owns the servers and a temporary folder for their files. It holds the read
// end of a pipe whose other end only the starting program has. However that program ends, by a return, a panic, a test
// timeout, Ctrl-C or kill -9, the pipe closes, and the supervisor kills the servers and removes the folder. On Linux the
// servers also die when the supervisor itself is killed with -9; only the folder stays then.
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Supervisor is the owner's handle on a supervisor process.
type Supervisor struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	folder string

	asking   sync.Mutex // one request at a time
	requests *json.Encoder
	answers  chan event
	ended    chan struct{} // closed when the supervisor process has closed its output

	mu        sync.Mutex
	processes map[int]*Process
	detached  bool
}

// New starts the supervisor program at path, which must call [Main], with these variables added to its environment.
func New(path string, env ...string) (*Supervisor, error) {
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches the owner only
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	s := &Supervisor{
		cmd: cmd, stdin: stdin, requests: json.NewEncoder(stdin),
		answers: make(chan event), ended: make(chan struct{}), processes: map[int]*Process{},
	}
	events := json.NewDecoder(stdout)
	var h hello
	if err := events.Decode(&h); err != nil || h.Error != "" {
		_ = stdin.Close()
		_ = cmd.Wait()
		return nil, errors.Join(fmt.Errorf("start the supervisor: %s", h.Error), err)
	}
	s.folder = h.Folder
	go s.receive(events)
	return s, nil
}

// Folder is where the servers keep their files and logs. It goes when the servers go.
func (s *Supervisor) Folder() string { return s.folder }

// PID is the supervisor's process id. A SIGTERM to it stops the servers and removes the folder.
func (s *Supervisor) PID() int { return s.cmd.Process.Pid }

// Start runs a program.
func (s *Supervisor) Start(c Command) (*Process, error) {
	e, err := s.ask(request{Start: &c})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process(e.PID, c.Name), nil
}

// Detach lets the servers live on when the owner ends. A SIGTERM to [Supervisor.PID] or [Supervisor.Stop] ends them.
func (s *Supervisor) Detach() error {
	if _, err := s.ask(request{Detach: true}); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	s.detached = true
	return nil
}

// Stop ends the servers, last started first, removes the folder and waits until both are done. It may be called twice.
func (s *Supervisor) Stop() error {
	if s.detached {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
	}
	_ = s.stdin.Close()
	<-s.ended
	if err := s.cmd.Wait(); err != nil && s.cmd.ProcessState == nil {
		return fmt.Errorf("stop the supervisor: %w", err)
	}
	if _, err := os.Stat(s.folder); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the supervisor ended (%s) without removing %s", s.cmd.ProcessState, s.folder)
	}
	return nil
}
