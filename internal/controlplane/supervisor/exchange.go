package supervisor

import (
	"encoding/json"
	"errors"
	"path/filepath"
)

// ask sends a request and waits for its answer.
func (s *Supervisor) ask(r request) (event, error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	gone := errors.New("the supervisor has ended")
	if err := s.requests.Encode(r); err != nil {
		return event{}, errors.Join(gone, err)
	}
	select {
	case e := <-s.answers:
		if e.Error != "" {
			return e, errors.New(e.Error)
		}
		return e, nil
	case <-s.ended:
		return event{}, gone
	}
}

// receive takes the supervisor's events until it has ended.
func (s *Supervisor) receive(events *json.Decoder) {
	defer s.abandon()
	for {
		var e event
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

// abandon ends every process that is still thought to run: the supervisor has ended, and its servers with it.
func (s *Supervisor) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ended)
	for _, p := range s.processes {
		p.exit("its supervisor has ended")
	}
}

// process gives the one Process of a pid, whichever is noticed first, its start or its end. The caller holds mu.
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
