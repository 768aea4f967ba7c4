// Package turns bounds the long work of one pass, so that the objects which wait for a worker get their turn.
package turns

import (
	"fmt"
	"sync"
	"time"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/passcontext"
)

const (
	// After is the delay after which an object whose turn is over continues. It then comes behind all objects that are in the queue at that
	// time.
	After = time.Millisecond

	// shortest is the shortest time that can be set. Whoever sets a shorter one has probably forgotten the unit.
	shortest = time.Millisecond
)

// Bounds are the bounds of the long work of one pass.
type Bounds struct {
	Calls int
	Time  time.Duration
}

// Default are the bounds of a reconciler without WithTurns.
var Default = Bounds{100, time.Second}

// Validate returns an error if a pass could do nothing.
func (b Bounds) Validate() error {
	switch {
	case b.Calls < 1:
		return fmt.Errorf("WithTurns: the number of calls is %d: set it to 1 or more, such as %d", b.Calls, Default.Calls)
	case b.Time < shortest:
		return fmt.Errorf("WithTurns: the time is %s: set it to %s or more, such as %s", b.Time, shortest, Default.Time)
	}
	return nil
}

// Turn counts the calls of a pass. The zero value is a pass that has made no call.
type Turn struct {
	mu    sync.Mutex // a step may make calls in several goroutines
	began time.Time  // the time of the first call
	calls int
	known map[spender]bool // the spenders that have made a call
}

// spender is a step, together with one of its ways to make calls.
type spender struct {
	step int
	by   passcontext.Spender
}

// Spend notes a call that a step is about to make. If the pass has made enough calls, it returns an error. It never refuses the first call
// of a spender. After a call of a block, it never refuses the first call of a function of the user.
func (t *Turn) Spend(now time.Time, most Bounds, step int, by passcontext.Spender) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == 0 {
		t.began = now
	}
	who := spender{step, by}
	isOver := t.calls >= most.Calls || now.Sub(t.began) >= most.Time
	if isOver && t.known[who] {
		return Over
	}
	if t.known == nil {
		t.known = map[spender]bool{}
	}
	t.known[who] = true
	if by == passcontext.ByBlock { // the block may call another function
		delete(t.known, spender{step, passcontext.ByFunction})
	}
	t.calls++
	return nil
}

// Yielded is the reason of a step whose turn is over.
const Yielded = "Yielded"

// Over is the wait of a step whose turn is over. Its message has no numbers, because each change of the message would be written to the
// status.
var Over error = overError{}

type overError struct{}

func (overError) Error() string {
	return "there is more to do, and it goes on in turns with other objects"
}

// Waiting implements reconcile.Waiter.
func (overError) Waiting() (reason string, after time.Duration) { return Yielded, After }

// Is reports that it is [passcontext.ErrTurnOver].
func (overError) Is(target error) bool { return target == passcontext.ErrTurnOver }

// IsShown reports whether the conditions are about a generation of the object. If so, they stay as they are while a step continues in later
// passes. Otherwise the step would alternate between two outcomes, and would write the status for ever, because each write is an event. If
// the condition type of a kind lacks the observed generation, isObserved counts, which is about the observed generation of the status.
func IsShown(list conditions.List, generation int64, isObserved bool) bool {
	if list == nil {
		return false
	}
	ready, found := list.Get(conditions.Ready)
	return found && (ready.ObservedGeneration == generation || ready.ObservedGeneration == 0 && isObserved)
}
