package external_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

const secret = "hunter2"

// ready returns the condition Ready of the object.
func (e *env) ready() metav1.Condition {
	ready, _ := conditions.Get(e.object.Status.Conditions, conditions.Ready)
	return ready
}

// passLogging runs a pass and returns what was logged.
func (e *env) passLogging() (logged string) {
	e.t.Helper()
	var lines strings.Builder
	logger := funcr.New(func(prefix, args string) { lines.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 10})
	_, err := e.reconciler.Reconcile(log.IntoContext(e.t.Context(), logger), ctrl.Request{NamespacedName: e.name()})
	require.NoError(e.t, err)
	if err := e.Get(e.t.Context(), e.name(), e.object); err != nil {
		require.NoError(e.t, client.IgnoreNotFound(err))
	}
	return lines.String()
}

// TestPanicIsAnErrorOfTheObject lets each function of the resource panic once. Only one object at a time may call the
// server, so the test also shows that a panic does not block the server.
func TestPanicIsAnErrorOfTheObject(t *testing.T) {
	boom := func() { panic(errors.New("wrong password " + secret)) }
	for name, tc := range map[string]struct {
		reason  string
		edit    func(r *external.Resource[*Account, entry], boom func())
		deletes bool
		names   string
		pending bool
	}{
		"Observe": {"nothing is known", func(r *external.Resource[*Account, entry], boom func()) {
			inner := r.Observe
			r.Observe = func(ctx context.Context, c client.Client, a *Account, ref external.Reference) (entry, error) {
				boom()
				return inner(ctx, c, a, ref)
			}
		}, false, "Observe panicked", false},
		"Create": {"it may have had an effect", func(r *external.Resource[*Account, entry], boom func()) {
			inner := r.Create
			r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
				boom()
				return inner(ctx, c, a, ref, desired)
			}
		}, false, "Create panicked", true},
		"Delete": {"the finalizer stays", func(r *external.Resource[*Account, entry], boom func()) {
			inner := r.Delete
			r.Delete = func(ctx context.Context, c client.Client, a *Account, ref external.Reference) error {
				boom()
				return inner(ctx, c, a, ref)
			}
		}, true, "Delete panicked", false},
		"Desired": {"it has what is sensitive in hand", func(r *external.Resource[*Account, entry], boom func()) {
			inner := r.Desired
			r.Desired = func(ctx context.Context, c client.Client, a *Account) (entry, error) {
				boom()
				return inner(ctx, c, a)
			}
		}, false, "a function of the resource panicked", false},
		"Retain": {"it is called in a cleanup", func(r *external.Resource[*Account, entry], boom func()) {
			r.Retain = func(*Account) bool { boom(); return false }
		}, true, "a function of the resource panicked", false},
	} {
		t.Run(name, func(t *testing.T) {
			armed := false
			e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
				r.Concurrency = 1
				tc.edit(r, func() {
					if armed {
						armed = false
						boom()
					}
				})
			})
			if tc.deletes {
				e.pass()
				require.NoError(t, e.Delete(t.Context(), e.object))
			}
			armed = true
			logged := e.passLogging()
			require.Equal(t, "Panicked", e.ready().Reason, tc.reason)
			require.Contains(t, e.ready().Message, tc.names)
			require.Equal(t, tc.pending, e.object.Status.Account.Pending, tc.reason)
			require.Contains(t, logged, "call_test.go", "the log has the stack")
			require.NotContains(t, logged+e.ready().Message, secret)
			_, reason, _ := e.pass()
			if tc.deletes {
				require.Empty(t, e.api.entries)
				return
			}
			require.Equal(t, "Succeeded", reason, "the server is neither occupied nor probed")
		})
	}
}

// TestPanicOfTheRuntime proves that the condition shows the value of a panic if it is an error of the Go runtime, because
// such an error contains no data of the program.
func TestPanicOfTheRuntime(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Adopt = func(_ *Account, observed entry) error { return []error{}[observed.Quota] }
	})
	e.api.entries["alice"] = entry{Quota: 7}
	require.Contains(t, e.passLogging(), "index out of range [7]")
}

// TestPanicOfAProbe: a function panics in the pass that finds out whether a server can be reached again. The next
// pass tries again.
func TestPanicOfAProbe(t *testing.T) {
	answer := func() error { return external.Unreachable(errors.New("503")) }
	e := newEnv(t, external.ByKey, nil)
	e.api.fail = func(string) (before, after error) { return answer(), nil }
	e.pass()
	e.clock.SetTime(e.clock.Now().Add(time.Second))
	answer = func() error { panic(secret) }
	_, reason, _ := e.pass()
	require.Equal(t, "Panicked", reason)
	e.api.fail = nil
	_, reason, _ = e.pass()
	require.Equal(t, "Succeeded", reason)
}

// hanging is a function that ignores its context, and returns when the test tells it to.
type hanging struct {
	mu     sync.Mutex
	calls  int
	resume chan struct{}
	after  func(ctx context.Context, a *Account)
	ended  chan struct{}
}

func (h *hanging) observe(ctx context.Context, _ client.Client, a *Account, _ external.Reference) (entry, error) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	<-h.resume
	if h.after != nil {
		h.after(ctx, a)
		h.after = nil
		close(h.ended)
	}
	return entry{Owner: "default/alice", Quota: 1}, nil
}

func (h *hanging) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

func newHanging() *hanging { return &hanging{resume: make(chan struct{}), ended: make(chan struct{})} }

// TestCallThatDoesNotReturn: a call still runs after its pass has ended. Whatever the function then does with the
// pass has no effect.
func TestCallThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.Observe = h.observe })
		var late error
		h.after = func(ctx context.Context, a *Account) {
			late = reconcile.Checkpoint(ctx)
			a.Status.Account.Key = "nonsense"
			a.Status.Conditions = nil
			reconcile.Eventf(ctx, a, "Normal", "Late", "late")
		}
		begin := time.Now()
		_, reason, _ := e.pass()
		require.Equal(t, external.ReasonUnreachable, reason)
		require.Contains(t, e.ready().Message, "Observe has not returned")
		require.Equal(t, 11*time.Second, time.Since(begin), "the timeout and the margin")

		e.clock.SetTime(e.clock.Now().Add(time.Minute))
		_, reason, _ = e.pass()
		require.Equal(t, "NotReturned", reason)
		require.Equal(t, 1, h.count(), "no second call for the object is made")
		require.Equal(t, 11*time.Second, time.Since(begin))

		close(h.resume)
		<-h.ended
		synctest.Wait()
		require.Error(t, late, "its pass has ended")
		require.NoError(t, e.Get(t.Context(), e.name(), e.object))
		require.Empty(t, e.object.Status.Account.Key, "what it wrote into the object is lost")
		_, reason, _ = e.pass()
		require.NotEqual(t, "NotReturned", reason, "it has returned")
		require.Equal(t, 2, h.count())
	})
}

// TestCallThatReturnsLate: the call returns shortly after its context has ended, and the pass has waited for it.
func TestCallThatReturnsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
			r.Observe = func(ctx context.Context, _ client.Client, a *Account, _ external.Reference) (entry, error) {
				<-ctx.Done()
				time.Sleep(900 * time.Millisecond)
				a.Status.Account.Version = "seen"
				return entry{}, ctx.Err()
			}
		})
		_, reason, _ := e.pass()
		require.Equal(t, external.ReasonUnreachable, reason)
		require.Equal(t, "seen", e.object.Status.Account.Version, "what it wrote into the object counts")
		require.Zero(t, e.step.Abandoned())
	})
}

// TestCallOfAPassThatEnds: the context of the pass is cancelled during the call, as when the operator stops.
func TestCallOfAPassThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.Observe = h.observe })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := e.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: e.name()})
		require.NoError(t, err)
		require.Equal(t, 4*time.Second, time.Since(begin))
		require.Equal(t, 1, e.step.Abandoned())
		close(h.resume)
		synctest.Wait()
		require.Zero(t, e.step.Abandoned())
	})
}

// TestFunctionsMayUseThePass: functions of the resource change the status and make a checkpoint.
func TestFunctionsMayUseThePass(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		inner := r.Create
		r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
			a.Status.Login = "mine"
			if err := reconcile.Checkpoint(ctx); err != nil {
				return "", err
			}
			return inner(ctx, c, a, ref, desired)
		}
	})
	_, reason, _ := e.pass()
	require.Equal(t, "Succeeded", reason)
	require.Equal(t, "mine", e.object.Status.Login)
}

// TestFunctionThatEndsItsGoroutine: a function ends its goroutine, as a failed check of a test does. That also ends
// the goroutine of the pass.
func TestFunctionThatEndsItsGoroutine(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Observe = func(context.Context, client.Client, *Account, external.Reference) (entry, error) {
			runtime.Goexit()
			return entry{}, nil
		}
	})
	ended, returned := make(chan struct{}), false
	go func() {
		defer close(ended)
		_, _ = e.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: e.name()})
		returned = true
	}()
	<-ended
	require.False(t, returned)
}
