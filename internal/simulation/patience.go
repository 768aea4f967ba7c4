package simulation

import (
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/state"
)

// runPatiently runs the scenario without faults, and lingers after each action. With a fault an action often takes longer, and
// then the operator may get as far before the next action as it gets in this run.
func (s *Scenario) runPatiently(t *testing.T) *result {
	var r *Run
	inBubble(t, func(*testing.T) {
		server, err := s.newServer(nil)
		if err != nil {
			return
		}
		r = newRun(s, server, nil, nil)
		r.lingers = true
		r.runActions()
		time.Sleep(time.Minute) // for goroutines that end at their next tick
	})
	if r == nil {
		return &result{}
	}
	return &result{phases: r.script.phases, operations: r.operations, rights: r.rights.all(), unfinished: r.unfinished}
}

// maxLinger is how many delays are followed after a phase.
const maxLinger = 30

// linger lets the operator do what becomes due within another horizon after a phase has ended, in a run that does so. It keeps
// the states to which that leads. After the last action it does nothing.
func (r *Run) linger() {
	if !r.lingers || r.failure() != nil || r.script.done == len(r.scenario.Actions) {
		return
	}
	ended := &r.script.phases[len(r.script.phases)-1]
	end := time.Now().Add(r.scenario.horizon())
	for range maxLinger {
		at, whose := r.processes.leader.manager.NextDue(nil, 1)
		if whose == nil || at.After(end) {
			return
		}
		before := r.version()
		time.Sleep(time.Until(at) + timerDelay)
		if r.work(0); r.version() == before {
			continue
		}
		s, err := r.state()
		if err != nil || r.failure() != nil {
			return
		}
		ended.later = append(ended.later, s)
		ended.operations = r.operations.harmful()
	}
}

// stateAfterRest returns the state to which the passes of checkRest have led. A process that starts again gets there too.
func (r *Run) stateAfterRest() []state.State {
	if r.settle(); r.failure() != nil {
		return nil
	}
	s, err := r.state()
	if err != nil {
		return nil
	}
	return []state.State{s}
}

// state returns what exists now.
func (r *Run) state() (state.State, error) { return r.stateWith(r.externalState()) }

// stateWith returns what exists now. external is what is outside of the cluster.
func (r *Run) stateWith(external string) (state.State, error) {
	r.mu.Lock()
	objects := r.history.objects()
	r.mu.Unlock()
	return state.Of(objects, &r.history.known, external, r.scenario.Ignore)
}
