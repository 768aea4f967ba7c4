package run

import (
	"fmt"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// phases are the parts of a run that have ended: the start, and then one for each action. A phase ends when the operator is quiet. Then its
// state is checked. The run's lock guards them.
type phases struct {
	driver   *driver
	world    *world.World
	operator *operator.Operator
	actions  *actions
	judge    judge

	ended []result.Phase // one for the start, and one for each action that has ended
	notes restNotes
}

// add notes that a phase has ended.
func (p *phases) add(ended result.Phase) { p.ended = append(p.ended, ended) }

// finish lets the operator become quiet. Then it checks the state, and that one more pass of every object changes nothing. If a fault is
// injected during that check, or work becomes due, the operator has to become quiet again, and both checks are repeated.
func (p *phases) finish(name string) {
	rest := restCheck{driver: p.driver, ignore: p.judge.scenario.Ignore, notes: &p.notes, probes: probes{world: p.world, operator: p.operator}}
	for {
		if p.driver.settle(); p.world.Failures.First() != nil {
			return
		}
		if p.operator.IsDown() { // no process has worked since the action
			p.add(result.Phase{Name: name})
			return
		}
		quiet, ok := p.check(name)
		if !ok {
			return
		}
		before := p.world.Version()
		if rest.run() {
			if p.world.References == nil && p.world.Version() != before { // the check found a change, and the scenario leaves out such findings
				quiet.Later = append(quiet.Later, p.stateAfterRest()...)
			}
			p.add(quiet)
			return
		}
	}
}

// finishExternal is like finish, for an action outside of the cluster. It does not check that one more pass changes nothing: the operator
// got no event of the action, so that pass may be the first to see it, and may rightly change something.
func (p *phases) finishExternal(name string) {
	if p.driver.settle(); p.world.Failures.First() != nil {
		return
	}
	if quiet, ok := p.check(name); ok {
		p.add(quiet)
	}
}

// check checks the state of the phase that ends now, and returns the phase. The run fails if the state is not the same as without faults,
// if the operator has undone a change of another writer, or if it has done harm. ok reports whether the run goes on.
func (p *phases) check(name string) (quiet result.Phase, ok bool) {
	quiet, err := p.end(name)
	if err != nil {
		p.world.Failures.Add(err)
	}
	return quiet, p.world.Failures.First() == nil
}

func (p *phases) end(name string) (result.Phase, error) {
	w := p.world
	w.Mu.Lock()
	err := w.Others.Check()
	w.Mu.Unlock()
	if err != nil {
		return result.Phase{}, err
	}
	if w.References == nil {
		operator.VerdictOf(p.operator).Rest(name)
	}
	if err := w.DuplicateError(name); err != nil {
		return result.Phase{}, err
	}
	index := len(p.ended)
	quiet := result.Phase{Orphans: w.Orphans(), Name: name, Revision: w.Server.Revision(), External: w.ExternalState(), Operations: w.Counter.Harmful()}
	if same := p.judge.unchanged(index, &quiet); same != nil {
		quiet.State = same.State // the state needs no check: it equals the state without faults
	} else {
		if quiet.State, err = p.judge.state(quiet.External); err != nil {
			return result.Phase{}, err
		}
		if err := p.judge.compare(index, &quiet); err != nil {
			return quiet, err
		}
	}
	if err := p.actions.checkThen(w); err != nil {
		return quiet, asked(fmt.Errorf("after %q what must be true is not: %w", name, err))
	}
	if w.References != nil {
		allowed := w.References.Allowed(index)
		if err := w.CheckOperations(&allowed); err != nil {
			return quiet, err
		}
	}
	return quiet, nil
}

// stateAfterRest returns the state after one more pass of every object. A process that starts after a fault leads to this state too.
func (p *phases) stateAfterRest() []state.State {
	if p.driver.settle(); p.world.Failures.First() != nil {
		return nil
	}
	now, err := p.judge.state(p.world.ExternalState())
	if err != nil {
		return nil
	}
	return []state.State{now}
}

// maxLinger is the largest number of delayed passes that linger waits for.
const maxLinger = 30

// linger lets the operator do what becomes due within one more horizon after the end of a phase, and stores the states that it reaches.
// After the last action it does nothing.
func (p *phases) linger() {
	if p.world.Failures.First() != nil || p.actions.haveBegun() {
		return
	}
	ended := &p.ended[len(p.ended)-1]
	end := time.Now().Add(p.driver.scenario.horizon())
	for range maxLinger {
		at, whose := p.operator.Leader.Mgr.NextDue(nil, 1)
		if whose == nil || at.After(end) {
			return
		}
		before := p.world.Version()
		time.Sleep(time.Until(at) + timerDelay)
		if p.driver.work(0); p.world.Version() == before {
			continue
		}
		now, err := p.judge.state(p.world.ExternalState())
		if err != nil || p.world.Failures.First() != nil {
			return
		}
		ended.Later = append(ended.Later, now)
		ended.Operations = p.world.Counter.Harmful()
	}
}
