package run

import "time"

// maxLinger is how many delays are followed after a phase.
const maxLinger = 30

// linger lets the operator do what becomes due within another horizon after a phase has ended, in a run that does so. It keeps
// the states to which that leads. After the last action it does nothing.
func (s *script) linger() {
	if !s.lingers || s.Failure() != nil || s.done == len(s.scenario.Actions) {
		return
	}
	ended := &s.phases[len(s.phases)-1]
	end := time.Now().Add(s.scenario.horizon())
	for range maxLinger {
		at, whose := s.Leader.Mgr.NextDue(nil, 1)
		if whose == nil || at.After(end) {
			return
		}
		before := s.Version()
		time.Sleep(time.Until(at) + timerDelay)
		if s.work(0); s.Version() == before {
			continue
		}
		now, err := s.state()
		if err != nil || s.Failure() != nil {
			return
		}
		ended.Later = append(ended.Later, now)
		ended.Operations = s.Counter.Harmful()
	}
}
