package external

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile"
)

// function is the name of a function that calls the API.
type function string

const (
	observes function = "Observe"
	creates  function = "Create"
	updates  function = "Update"
	deletes  function = "Delete"
	admits   function = "Admit"
	issues   function = "Issue"
)

// callMargin is how long a call may still run after its context has ended. Then the pass goes on without it.
const callMargin = time.Second

// call makes a call to the API that returns only an error.
func (p *pass[T, S]) call(ctx context.Context, f function, do func(ctx context.Context) error) error {
	_, err := ask(ctx, p, f, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// ask makes a call to the API. Its context ends after the timeout.
func ask[T client.Object, S, A any](ctx context.Context, p *pass[T, S], f function, do func(ctx context.Context) (A, error)) (answer A, err error) {
	if err := p.visit.take(ctx); err != nil {
		return answer, err
	}
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	answer, err = await(limited, &p.abandoned, p.obj.GetUID(), f, do)
	p.detached = p.abandoned.err(p.obj.GetUID()) != nil
	late := err != nil && limited.Err() != nil && ctx.Err() == nil
	if late {
		err = fmt.Errorf("no answer within %v: %w", p.Timeout, err)
	}
	p.metrics.call(ctx, p.state, f, resultOf(err, late), begin)
	return answer, p.visit.note(withoutQueries(err), late)
}

// await calls a function in a goroutine of its own, and returns what it returns. If the function goes on for longer than the margin after
// the end of its context, await returns without it. From then on the function cannot reach the pass, and the pass has another copy of the
// object.
//
// An exploration has one goroutine for each pass, and reports a function that does not return: there the function is called directly.
func await[A any](ctx context.Context, a *abandoned, uid types.UID, f function, do func(ctx context.Context) (A, error)) (answer A, err error) {
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
	c, ended := &running{function: f}, make(chan struct{})
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

// endsInTime waits for the end of a call. It returns false if the margin after the end of the context has passed.
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

// abandoned has the calls that have not returned although their context has ended, at most one for each object.
type abandoned struct {
	mu    sync.Mutex
	byUID map[types.UID]*running
}

// running is a call that was made.
type running struct {
	function
	ended bool // guarded by the lock of abandoned
}

// add notes that nobody waits for a call any more. It returns false if the call has ended.
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

// end notes that a call has ended.
func (a *abandoned) end(uid types.UID, c *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.ended = true; a.byUID[uid] == c {
		delete(a.byUID, uid)
	}
}

// err returns an error if a call for an object has not returned.
func (a *abandoned) err(uid types.UID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.byUID[uid]
	if !ok {
		return nil
	}
	return reconcile.WithReason(ReasonNotReturned, fmt.Errorf("%s has not returned although its context has ended: nothing is called for the object before it does", c.function))
}

// count returns the number of calls that have not returned.
func (a *abandoned) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byUID)
}

// recovered calls a function, and returns an error if it panics.
func recovered[A any](ctx context.Context, f function, do func(ctx context.Context) (A, error)) (answer A, err error) {
	defer recoverPanic(ctx, string(f), &err)
	return do(ctx)
}

// recoverPanic makes a panic an error. It has to be deferred. The value of the panic is not shown, since it may hold what is sensitive,
// unless it is an error of the Go runtime, such as an index out of range.
func recoverPanic(ctx context.Context, what string, err *error) {
	value := recover()
	if value == nil {
		return
	}
	kind := fmt.Sprintf("a value of type %T", value)
	if own, ok := value.(runtime.Error); ok {
		kind = own.Error()
	}
	log.FromContext(ctx).Info("A function panicked", "function", what, "panic", kind, "stack", string(debug.Stack()))
	*err = &panicError{fmt.Errorf("%s panicked; the log has the stack", what)}
}

// panicError says nothing of the API, and leaves open whether a call had an effect.
type panicError struct{ error }

// Reason implements [reconcile.Reasoner].
func (panicError) Reason() string { return ReasonPanicked }
