package calls

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile"
)

// callMargin is how long a call may still run after its context has ended. Then the pass does not wait for it any more.
const callMargin = time.Second

// await calls a function in a new goroutine, and returns its results. If the function still runs callMargin after its context has ended,
// await returns an error. From then on the function cannot reach the pass, and the pass has another copy of the object.
//
// A test that explores faults has one goroutine for each pass, and reports a function that does not return. There, await calls the
// function directly.
func await[A any](ctx context.Context, a *abandoned, uid types.UID, f Function, do func(ctx context.Context) (A, error)) (answer A, err error) {
	if passcontext.IsExplored(ctx) {
		return recovered(ctx, f, do)
	}
	ofFunction, detach := ctx, func() {}
	if pass := passcontext.FromContext(ctx); pass != nil {
		ofFunction, detach = pass.Detach(ctx)
	}
	var result struct { // written before ended is closed
		answer   A
		err      error
		returned bool // false if the function has ended its goroutine, as t.FailNow does
	}
	c, ended := &running{Function: f}, make(chan struct{})
	go func() {
		defer close(ended)
		defer a.end(uid, c)
		result.answer, result.err = recovered(ofFunction, f, do)
		result.returned = true
	}()
	if !endsInTime(ctx, ended) && a.add(uid, c) {
		detach()
		return answer, fmt.Errorf("%s has not returned although its context has ended: %w", f, ctx.Err())
	}
	if <-ended; !result.returned {
		runtime.Goexit()
	}
	return result.answer, result.err
}

// endsInTime waits for the end of a call. It returns false if the call still runs callMargin after its context has
// ended.
func endsInTime(ctx context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	margin := time.NewTimer(callMargin)
	defer margin.Stop()
	select {
	case <-ended:
		return true
	case <-margin.C:
		return false
	}
}

// abandoned has the calls that still run although their context has ended long ago. There is at most one such call for each
// object.
type abandoned struct {
	mu    sync.Mutex
	byUID map[types.UID]*running
}

// running is a call that a goroutine makes.
type running struct {
	Function
	ended bool // guarded by the lock of abandoned
}

// add adds a call for which the pass does not wait any more. If the call has just ended, it returns false.
func (a *abandoned) add(uid types.UID, c *running) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.ended {
		return false
	}
	if a.byUID == nil {
		a.byUID = map[types.UID]*running{}
	}
	a.byUID[uid] = c
	return true
}

// end is called when a call has ended.
func (a *abandoned) end(uid types.UID, c *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.ended = true; a.byUID[uid] == c {
		delete(a.byUID, uid)
	}
}

// err returns an error if a call for an object still runs.
func (a *abandoned) err(uid types.UID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.byUID[uid]
	if !ok {
		return nil
	}
	return reconcile.WithReason(ReasonNotReturned, fmt.Errorf("%s has not returned although its context has ended: nothing is called for the object before it does", c.Function))
}

// count returns the number of calls that still run.
func (a *abandoned) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byUID)
}
