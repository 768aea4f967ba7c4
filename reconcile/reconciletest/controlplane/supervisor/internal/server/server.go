//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// Main is the main function of the supervisor process. It reads the requests of its owner, the program that has started it, from standard
// input, and writes answers to standard output. It returns after the owner has ended.
func Main() {
	// Linux sends the parent-death signal when the parent's thread ends, not when its process ends. So this thread starts all children.
	runtime.LockOSThread()
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP) // a write to an owner that has ended must not end the clean-up
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	out := json.NewEncoder(os.Stdout)
	folder, err := os.MkdirTemp("", "opblocks-")
	if err != nil {
		_ = out.Encode(Hello{Error: err.Error()})
		os.Exit(1)
	}
	s := server{folder: folder, out: out}
	defer func() {
		for _, c := range slices.Backward(s.children) {
			c.stop()
		}
		if err := os.RemoveAll(folder); err != nil {
			os.Exit(1)
		}
	}()
	_ = out.Encode(Hello{Folder: folder})
	s.serve(requests(os.Stdin), stop)
}

// requests returns a channel with the owner's requests. The channel is closed when the owner has closed its end of the pipe.
func requests(in io.Reader) <-chan Request {
	c := make(chan Request)
	go func() {
		defer close(c)
		for d := json.NewDecoder(in); ; {
			var r Request
			if d.Decode(&r) != nil {
				return
			}
			c <- r
		}
	}()
	return c
}

type server struct {
	folder   string
	children []*child

	writing sync.Mutex
	out     *json.Encoder
}

func (s *server) serve(requests <-chan Request, stop <-chan os.Signal) {
	detached := false
	for {
		select {
		case <-stop:
			return
		case r, open := <-requests:
			switch {
			case !open && detached:
				requests = nil
			case !open:
				return
			case r.Start != nil:
				s.start(*r.Start)
			case r.Kill != 0:
				s.do(r.Kill, s.kill)
			case r.Suspend != 0:
				s.do(r.Suspend, (*child).suspend)
			case r.Resume != 0:
				s.do(r.Resume, (*child).resume)
			default:
				detached = r.Detach
				s.send(Event{})
			}
		}
	}
}

func (s *server) send(e Event) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.out.Encode(e)
}

func (s *server) start(c Command) {
	started, err := startChild(c, s.folder)
	if err != nil {
		s.send(Event{Error: err.Error()})
		return
	}
	s.children = append(s.children, started)
	s.send(Event{PID: started.pid})
	go func() {
		started.wait()
		s.send(Event{Exited: started.pid, Status: started.status()})
	}()
}

// do calls action with the child that has the process id, and answers the request.
func (s *server) do(pid int, action func(*child) error) {
	i := slices.IndexFunc(s.children, func(c *child) bool { return c.pid == pid })
	if i < 0 {
		s.send(Event{Error: fmt.Sprintf("no child has process id %d", pid)})
		return
	}
	if err := action(s.children[i]); err != nil {
		s.send(Event{Error: err.Error()})
		return
	}
	s.send(Event{})
}

func (s *server) kill(c *child) error {
	c.kill()
	s.children = slices.DeleteFunc(s.children, func(other *child) bool { return other == c })
	return nil
}
