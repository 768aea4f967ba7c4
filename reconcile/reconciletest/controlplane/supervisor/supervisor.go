// Package supervisor runs servers that must end when the program that started them ends. That program is called the owner.
//
//	s, err := supervisor.New(ctx)
//	…
//	defer s.Stop()
//	server, err := s.Start(supervisor.Command{Name: "server", Path: path, Args: args})
//
// [New] starts a supervisor process. It runs the servers, and has a temporary folder for their files. The supervisor reads from a pipe
// whose other end only the owner holds. When the owner ends, the pipe is closed, whether the owner returns, panics, has a test timeout, or
// is ended by Ctrl-C or kill -9. The supervisor then kills the servers and removes the folder. On Linux the servers also end when the
// supervisor itself is killed by kill -9. Then only the folder is left.
package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor/internal/server"
)

// Supervisor represents a supervisor process in the program that has started it.
type Supervisor struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	folder string

	asking   sync.Mutex // one request at a time
	requests *json.Encoder
	answers  chan server.Event
	ended    chan struct{} // closed when the supervisor process has closed its output

	mu        sync.Mutex
	processes map[int]*Process
	detached  bool
}

// New starts a supervisor process. It builds the supervisor's program if need be, see [Build]. The context limits that
// build only: call [Supervisor.Stop] to stop the supervisor.
func New(ctx context.Context) (*Supervisor, error) {
	path, err := program(ctx)
	if err != nil {
		return nil, err
	}
	return start(path)
}

// start starts the supervisor program at path. env is added to its environment.
func start(path string, env ...string) (*Supervisor, error) {
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = supervisorAttributes()
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
		answers: make(chan server.Event), ended: make(chan struct{}), processes: map[int]*Process{},
	}
	events := json.NewDecoder(stdout)
	var h server.Hello
	if err := events.Decode(&h); err != nil || h.Error != "" {
		_ = stdin.Close()
		_ = cmd.Wait()
		return nil, errors.Join(fmt.Errorf("start the supervisor: %s", h.Error), err)
	}
	s.folder = h.Folder
	go s.receive(events)
	return s, nil
}

// Folder returns the folder for the files and the logs of the servers. It is removed when the servers are stopped.
func (s *Supervisor) Folder() string { return s.folder }

// PID returns the supervisor's process id. A SIGTERM to it stops the servers and removes the folder.
func (s *Supervisor) PID() int { return s.cmd.Process.Pid }

// Start starts a program.
func (s *Supervisor) Start(c Command) (*Process, error) {
	e, err := s.ask(server.Request{Start: (*server.Command)(&c)})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process(e.PID, c.Name), nil
}

// Detach keeps the servers running when the owner ends. A SIGTERM to [Supervisor.PID] or [Supervisor.Stop] stops them.
func (s *Supervisor) Detach() error {
	if _, err := s.ask(server.Request{Detach: true}); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	s.detached = true
	return nil
}

// Stop stops the servers, the last started first, removes the folder, and returns when both are done. It may be called
// twice.
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

// ask sends a request and waits for its answer.
func (s *Supervisor) ask(r server.Request) (server.Event, error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	gone := errors.New("the supervisor has ended")
	if err := s.requests.Encode(r); err != nil {
		return server.Event{}, errors.Join(gone, err)
	}
	select {
	case e := <-s.answers:
		if e.Error != "" {
			return e, errors.New(e.Error)
		}
		return e, nil
	case <-s.ended:
		return server.Event{}, gone
	}
}

// receive handles the supervisor's events until it ends.
func (s *Supervisor) receive(events *json.Decoder) {
	defer s.abandon()
	for {
		var e server.Event
		if events.Decode(&e) != nil {
			return
		}
		if e.Exited == 0 {
			s.answers <- e
			continue
		}
		s.mu.Lock()
		s.process(e.Exited, "").exit(e.Status)
		s.mu.Unlock()
	}
}

// abandon marks every process as ended. It is called when the supervisor has ended: its servers have ended too.
func (s *Supervisor) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ended)
	for _, p := range s.processes {
		p.exit("its supervisor has ended")
	}
}

// process returns the Process with a pid. If there is none, it creates one: if a program ends quickly, that event comes before the answer
// to its start. The caller holds mu.
func (s *Supervisor) process(pid int, name string) *Process {
	p, found := s.processes[pid]
	if !found {
		p = &Process{supervisor: s, pid: pid, done: make(chan struct{})}
		s.processes[pid] = p
	}
	if name != "" {
		p.name, p.log = name, filepath.Join(s.folder, name+".log")
	}
	return p
}
