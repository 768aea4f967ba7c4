package reconciletest

import "fmt"

// Option says how an exploration is done.
type Option func(*settings)

type settings struct {
	depth   int
	limit   int
	seed    uint64
	replay  string
	without []FaultKind
}

const (
	defaultLimit = 1000
	defaultSeed  = 1
)

func (s *settings) validate() error {
	switch {
	case s.depth < 1 || s.depth > 2:
		return fmt.Errorf("Depth(%d): give it 1 or 2", s.depth)
	case s.limit < 1:
		return fmt.Errorf("Limit(%d): give it 1 or more", s.limit)
	}
	for _, kind := range s.without {
		if !isKind(kind) {
			return fmt.Errorf("Without(%q): there is no such kind of fault", kind)
		}
	}
	return nil
}

// Depth is how many faults strike in one run, at most: 1, the default, or 2.
func Depth(n int) Option { return func(s *settings) { s.depth = n } }

// Limit bounds the runs with more than one fault; from more possible ones a sample is taken. The
// default is 1000.
func Limit(n int) Option { return func(s *settings) { s.limit = n } }

// Seed chooses the sample; the report prints it. The default is 1.
func Seed(n uint64) Option { return func(s *settings) { s.seed = n } }

// Replay plays one run alone and prints its trace: the faults as a failure's last line names them.
func Replay(faults string) Option { return func(s *settings) { s.replay = faults } }

// SkipFaults leaves out some kinds of faults, such as those that an operator is known not to survive yet. The report
// names them.
func SkipFaults(kinds ...FaultKind) Option {
	return func(s *settings) { s.without = append(s.without, kinds...) }
}

// replayVariable does what [Replay] does, without a change of the test.
const replayVariable = "RECONCILETEST_REPLAY"
