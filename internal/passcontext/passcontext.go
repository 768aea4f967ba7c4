// Package passcontext carries the current pass of package reconcile in the context that steps are called with. Packages
// that must not import package reconcile, such as ownedresources, reach the pass through it.
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

// Pass is what other packages ask of the current pass.
//
// Its methods are exported, because a type of another package cannot implement unexported methods. With unexported methods FromContext
// would find no pass, and functions for the end of the pass would run at once.
type Pass interface {
	// AfterSteps registers a function to run at the end of the pass, after all steps, if each of them succeeded or waits.
	// Its error becomes the outcome of the step that registered it. In a cleanup the function runs right
	// after the cleanup has succeeded, before the finalizer is removed.
	AfterSteps(do func(ctx context.Context) error)

	// KeepAnnotation notes that a step needs an annotation of the object, or all of a prefix: no other step may remove it at the end of
	// the pass. AnnotationKeptBy returns the step that has noted that last for this key or prefix.
	KeepAnnotation(key, step string)
	AnnotationKeptBy(key string) (step string, kept bool)

	// SetCondition sets a condition of the object at the end of the pass. Neither Ready nor the next pass depends on it. If
	// several conditions have one type, the last one counts. If the step that sets it loses a race, the condition stays as it
	// is.
	SetCondition(condition metav1.Condition)

	// ConfirmCurrent makes sure, past the cache, that obj is not older than this process. It sends at most one request
	// per object and process. A conflict error means that obj was changed or deleted, and that the cache does not show it
	// yet. If the pass is over another object, known is false and the error is nil.
	ConfirmCurrent(ctx context.Context, obj client.Object) (known bool, err error)

	// Rebase continues the pass from the present version of obj. Call it after a write to the metadata of obj that had the
	// resource version as precondition, when obj has the answer. It does nothing if the pass is over another object.
	Rebase(obj client.Object)

	// Detach is for a function that may never return. It returns the context to call the function with, and end, which is called when
	// nobody waits for the function any more. From then on the function is outside of the pass, and keeps the object that it has. The
	// pass goes on with a copy of the object in the version that was last read or written.
	Detach(ctx context.Context) (ofFunction context.Context, end func())

	// OtherBuilderOf returns the name of the step that runs, and of another step that builds an object of this name for the object of the
	// pass too: a step of the same reconciler, or of another one of the same manager. If no other step builds the object, other is empty.
	// A step counts only if it certainly builds the object: one step may have left the object to another.
	OtherBuilderOf(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) (running, other string)

	// Spend notes that the step that runs is about to make a call of long work. It returns an error that is [ErrTurnOver] if the pass has
	// done enough. The first call by each spender of a step is never refused.
	Spend(by Spender) error

	// AsCached reports whether obj is the object of the pass as the cache shows it: it was not read from the memory of our own
	// writes, was not written since, and no earlier step could change it. (Sets of children do not change it.)
	AsCached(obj client.Object) bool
}

// Spender is who makes a call of long work in a step.
type Spender int

const (
	// ByFunction is for a call in a function of the user.
	ByFunction Spender = iota
	// ByBlock is for a call of a block, which may call a function of the user that makes calls itself.
	ByBlock
)

// ErrTurnOver is the error of a step that goes on in a later pass, after the objects that wait.
var ErrTurnOver = errors.New("the turn of the pass is over")

type withoutTurnKey struct{}

// WithoutTurn returns a context for a function whose work cannot be cut into turns.
func WithoutTurn(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutTurnKey{}, true)
}

// HasTurn reports whether the work can be cut into turns. It returns false for a context from [WithoutTurn].
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

// WithPurityCheck returns a context in which sets of children call the functions that build even where they would skip
// that. They call report with an error if a function returns something else although nothing that it may depend on has
// changed.
func WithPurityCheck(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, purityKey{}, report)
}

type withoutFaultsKey struct{}

// WithoutFaults returns a context whose reads are not part of the pass: an exploration neither records them nor makes
// them fail.
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

// WithRandom returns a context in which [ReadRandom] calls read. An exploration repeats the random values of one run in the others.
func WithRandom(ctx context.Context, read func(into []byte)) context.Context {
	return context.WithValue(ctx, randomKey{}, read)
}

// ReadRandom fills the bytes with random ones. If the context was made by [WithRandom], its function makes them. Otherwise they come from
// crypto/rand.
func ReadRandom(ctx context.Context, into []byte) {
	if read, ok := ctx.Value(randomKey{}).(func([]byte)); ok {
		read(into)
		return
	}
	_, _ = rand.Read(into) // it never returns an error
}

type concurrencyKey struct{}

// WithConcurrency returns a context in which [Concurrently] calls run, with the same arguments. An exploration chooses the order.
func WithConcurrency(ctx context.Context, run func(n int, do func(i int))) context.Context {
	return context.WithValue(ctx, concurrencyKey{}, run)
}

// IsExplored reports whether the context was made by [WithConcurrency]: an exploration must know of everything that runs at once.
func IsExplored(ctx context.Context) bool { return ctx.Value(concurrencyKey{}) != nil }

// maxConcurrent is the largest number of goroutines of [Concurrently] in the process. More requests would wait in the API
// server's queue.
const maxConcurrent = 16

// running holds a value for each of these goroutines.
var running = make(chan struct{}, maxConcurrent)

// Concurrently calls do with the numbers from 0 to n-1, and returns when all calls have returned. As long as the process has fewer
// than [maxConcurrent] such goroutines, a call has a goroutine of its own. Other calls are made one after the other, so that none
// ever waits for a goroutine to end. A panic of a call is a panic of Concurrently, which has its stack.
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
