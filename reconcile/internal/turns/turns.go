// Package turns limits the work of one pass, so that other objects do not wait for a worker too long.
package turns

import (
	"fmt"
	"sync"
	"time"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/passcontext"
)

const (
	// After is the delay after which an object continues its work. It then comes after all objects that are in the queue at that time.
	After = time.Millisecond

	// shortest is the shortest time that can be set. If somebody sets a shorter one, the unit is probably missing.
	shortest = time.Millisecond
)

// Bounds are the limits of the work of one pass.
type Bounds struct {
	Calls int
	Time  time.Duration
}

// Default are the limits of a reconciler without WithTurns.
var Default = Bounds{100, time.Second}

// Validate returns an error if the limits are so low that a pass could do nothing.
func (b Bounds) Validate() error {
	switch {
	case b.Calls < 1:
		return fmt.Errorf("WithTurns: the number of calls is %d: set it to 1 or more, such as %d", b.Calls, Default.Calls)
	case b.Time < shortest:
		return fmt.Errorf("WithTurns: the time is %s: set it to %s or more, such as %s", b.Time, shortest, Default.Time)
	}
	return nil
}

// Turn counts the calls of a pass. Its zero value is for a pass that has made no call.
type Turn struct {
	mu    sync.Mutex // a step may make calls in several goroutines
	began time.Time  // the time of the first call
	calls int
	known map[spender]bool // the spenders that have made a call
}

// spender is a step, and a way in which it makes calls: by a function of the user, or by a step of this module.
type spender struct {
	step int
	by   passcontext.Spender
}

// Spend counts a call that a step is about to make. If the pass has made its number of calls, or its time is over, it returns an error. It
// never refuses the first call of a spender. After a call by a step of this module, it also never refuses the first call by a function of
// the user.
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
	if by == passcontext.ByBlock { // the step of this module may call another function of the user
		delete(t.known, spender{step, passcontext.ByFunction})
	}
	t.calls++
	return nil
}

// Yielded is the reason of a step that continues its work in a later pass.
const Yielded = "Yielded"

// Over is the error of a step that continues its work in a later pass. Its message has no numbers, because each change of the message
// would be written to the status.
var Over error = overError{}

type overError struct{}

func (overError) Error() string {
	return "there is more to do, and it goes on in turns with other objects"
}

// Waiting implements reconcile.Waiter.
func (overError) Waiting() (reason string, after time.Duration) { return Yielded, After }

// Is makes errors.Is(err, [passcontext.ErrTurnOver]) true.
func (overError) Is(target error) bool { return target == passcontext.ErrTurnOver }

// IsShown reports whether the conditions are about this generation of the object. If so, they stay as they are while a step continues its
// work in later passes. Otherwise the conditions would alternate between two outcomes, and each write of the status would trigger the next
// one. isObserved is the result for the observed generation of the status. It is used if the condition struct of a kind has no observed
// generation.
func IsShown(list conditions.List, generation int64, isObserved bool) bool {
	if list == nil {
		return false
	}
	ready, found := list.Get(conditions.Ready)
	return found && (ready.ObservedGeneration == generation || ready.ObservedGeneration == 0 && isObserved)
}
