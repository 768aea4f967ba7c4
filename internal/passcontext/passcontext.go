// Package passcontext carries the current pass (one reconcile of one object by package reconcile) in the context with which steps are
// called. Packages that must not import package reconcile, such as ownedresources, reach the pass through it.
package passcontext

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pass is what other packages can ask of the current pass: the current reconcile of one object by package reconcile.
//
// Package reconcile implements Pass. So the methods of Pass are exported: a type of another package cannot define unexported ones.
type Pass interface {
	// AfterSteps registers a function that runs at the end of the pass, after all steps, if each of them succeeded or waits. The error of the
	// function becomes the result of the step that registered it. In a cleanup, the function runs right after the cleanup has succeeded,
	// before the finalizer is removed.
	AfterSteps(do func(ctx context.Context) error)

	// KeepAnnotation notes that a step needs the object's annotation with this key, or all annotations whose keys begin with this prefix. No
	// other step may remove them at the end of the pass. AnnotationKeptBy returns the step that was noted last for the key or the prefix.
	KeepAnnotation(key, step string)
	AnnotationKeptBy(key string) (step string, kept bool)

	// SetCondition sets a condition of the object at the end of the pass. Neither the condition Ready nor the next pass depends on it. If
	// several calls have the same type, the last one counts. If the step that sets it loses a race with another writer, the condition stays as
	// it is.
	SetCondition(condition metav1.Condition)

	// ConfirmCurrent makes sure, by a request to the API server, that obj is not older than this process. It sends at most one request for
	// each object in the life of the process. If obj was changed or deleted, and the cache does not show that yet, the error is a conflict. If
	// the pass is about another object, known is false and the error is nil.
	ConfirmCurrent(ctx context.Context, obj client.Object) (known bool, err error)

	// Rebase continues the pass with the present version of obj. Call it after a write to the metadata of obj that had the resource version as
	// precondition, when obj has the API server's answer. If the pass is about another object, Rebase does nothing.
	Rebase(obj client.Object)

	// Detach is for a call of a function that may never return. It returns the context for this call, and end. Call end when nobody waits for
	// the function any more. From then on, the function does not belong to the pass, and keeps the object that it has. The pass continues with
	// a copy of the object in the version that was last read or written.
	Detach(ctx context.Context) (ofFunction context.Context, end func())

	// OtherBuilderOf returns the name of the step that runs. It also returns the name of another step that builds an object of this kind and
	// name for the same owner, or "" if there is none: a step of the same reconciler, or of another one of the same manager. A step counts
	// only if it certainly builds the object, because one step may leave the object to another.
	OtherBuilderOf(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) (running, other string)

	// Spend is called before a request to a slow API or another long call in the step that runs. If the pass has made enough such calls, or
	// has taken long enough, the error is [ErrTurnOver]. The first call by each Spender of a step is never refused.
	Spend(by Spender) error

	// AsCached reports whether obj is the object of the pass exactly as the cache shows it: it was not taken from the memory of our own
	// writes, was not written since, and no earlier step could change it. (Sets of children do not change it.)
	AsCached(obj client.Object) bool
}

// Spender says who makes a long call in a step.
type Spender int

const (
	// ByFunction is for a call in a function of the user.
	ByFunction Spender = iota
	// ByBlock is for a call by a step of this module, which may call a function of the user that makes such calls too.
	ByBlock
)

// ErrTurnOver is the error of a step that has worked long enough on one object. It continues in a later pass, after the other objects that
// wait.
var ErrTurnOver = errors.New("the turn of the pass is over")

type withoutTurnKey struct{}

// WithoutTurn returns a context for a function whose work must not be interrupted by ErrTurnOver and continued later.
func WithoutTurn(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutTurnKey{}, true)
}

// HasTurn reports whether the work may be interrupted by ErrTurnOver. For a context from [WithoutTurn] it returns false.
func HasTurn(ctx context.Context) bool { return ctx.Value(withoutTurnKey{}) == nil }

type key struct{}

// NewContext returns a context that carries the pass.
func NewContext(ctx context.Context, pass Pass) context.Context {
	return context.WithValue(ctx, key{}, pass)
}

// FromContext returns the pass that the context carries, or nil outside of a pass.
func FromContext(ctx context.Context) Pass {
	pass, _ := ctx.Value(key{}).(Pass)
	return pass
}

type purityKey struct{}

// WithPurityCheck returns a context in which sets of children call the functions that build children even if nothing has changed. If a
// function returns something else than before, they call report with an error: the function depends on something else than it may depend
// on.
func WithPurityCheck(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, purityKey{}, report)
}

type withoutFaultsKey struct{}

// WithoutFaults returns a context for reads that do not belong to the pass. An exploration of package reconciletest neither records these
// reads nor makes them fail.
func WithoutFaults(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutFaultsKey{}, true)
}

// IsWithoutFaults reports whether the context was made by [WithoutFaults].
func IsWithoutFaults(ctx context.Context) bool { return ctx.Value(withoutFaultsKey{}) != nil }

// PurityCheck returns the function given to [WithPurityCheck], or nil.
func PurityCheck(ctx context.Context) (report func(error)) {
	report, _ = ctx.Value(purityKey{}).(func(error))
	return report
}

type randomKey struct{}

// WithRandom returns a context in which [ReadRandom] calls read. With it, an exploration of package reconciletest gives each run the same
// random values.
func WithRandom(ctx context.Context, read func(into []byte)) context.Context {
	return context.WithValue(ctx, randomKey{}, read)
}

// ReadRandom fills the slice with random bytes. If the context was made by [WithRandom], its function fills it. Otherwise the bytes come
// from crypto/rand.
func ReadRandom(ctx context.Context, into []byte) {
	if read, ok := ctx.Value(randomKey{}).(func([]byte)); ok {
		read(into)
		return
	}
	_, _ = rand.Read(into) // it never returns an error
}

type concurrencyKey struct{}

// WithConcurrency returns a context in which [Concurrently] calls run instead, with the same arguments. With it, an exploration of package
// reconciletest chooses the order of the calls.
func WithConcurrency(ctx context.Context, run func(n int, do func(i int))) context.Context {
	return context.WithValue(ctx, concurrencyKey{}, run)
}

// IsExplored reports whether the context was made by [WithConcurrency], so that an exploration of package reconciletest orders the calls.
// Then code must not start goroutines of its own: calls that may run at the same time have to go through [Concurrently].
func IsExplored(ctx context.Context) bool { return ctx.Value(concurrencyKey{}) != nil }

// maxConcurrent is the largest number of goroutines that [Concurrently] uses in the process. More requests would only wait in the API
// server's queue.
const maxConcurrent = 16

// running has one value for each of these goroutines.
var running = make(chan struct{}, maxConcurrent)

// Concurrently calls do with the numbers from 0 to n-1, and returns when all calls have returned. Each call gets a goroutine of its own, as
// long as the process has fewer than [maxConcurrent] such goroutines. Any other call is made by the caller's goroutine, so no call ever
// waits for another goroutine to end. If a call panics, Concurrently panics with the same value and the stack of the call.
func Concurrently(ctx context.Context, n int, do func(i int)) {
	if run, ok := ctx.Value(concurrencyKey{}).(func(int, func(int))); ok {
		run(n, do)
		return
	}
	if n == 1 {
		do(0)
		return
	}
	var calls sync.WaitGroup
	var panicked atomic.Pointer[string]
	defer func() {
		calls.Wait()
		if text := panicked.Load(); text != nil {
			panic(*text)
		}
	}()
	for i := range n {
		select {
		case running <- struct{}{}:
			calls.Go(func() {
				defer func() {
					<-running
					if r := recover(); r != nil {
						panicked.Store(new(fmt.Sprintf("%v\n%s", r, debug.Stack())))
					}
				}()
				do(i)
			})
		default:
			do(i)
		}
	}
}
