package reconciletest

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// Env is a run as a test or a check sees it.
type Env struct {
	client.Client // a user's: its requests are not in the ledger
	External      External
	RequestLog    *RequestLog

	t   *testing.T
	run *run
}

func (r *run) world() *Env {
	return &Env{Client: r.user, External: r.outside, RequestLog: r.ledger, run: r}
}

// Run is for ordinary tests: it plays the scenario without faults, and calls the test with the
// ledger reset when the operator has come to rest. Further actions are up to the test.
//
// The test runs in a bubble of testing/synctest: time.Now is virtual in it, and it must use the t that
// it is given.
func Run(t *testing.T, s Scenario, test func(t *testing.T, w *Env)) {
	t.Helper()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	var r *run
	var bubble string
	left := inBubble(t, func(t *testing.T) {
		bubble = bubbleName()
		server, err := memoryserver.New(s.Scheme, s.serverOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		r = newRun(&s, server, nil, nil)
		defer time.Sleep(time.Minute) // for what ends at its next tick
		defer r.end()
		r.open()
		w := r.world()
		w.t = t
		w.Do(s.Actions...)
		w.RequestLog.Reset()
		test(t, w)
	})
	if left && !t.Failed() {
		t.Errorf("a goroutine is left when the process has ended: %s", goroutinesOf(bubble))
	}
}

// Do does what a user does, and lets the operator come to rest each time. It fails the test if the
// operator does not, or breaks another rule of the package. It is for [Run] only.
func (w *Env) Do(actions ...Action) {
	w.t.Helper()
	for _, action := range actions {
		if err := action.validate(); err != nil {
			w.t.Fatal(err)
		}
		w.run.do(action)
	}
	if err := w.run.failure(); err != nil {
		w.t.Fatalf("%s\n\n%s", err, w.run.trace)
	}
}

// Trace gives what has happened so far, as a table.
func (w *Env) Trace() string { return w.run.trace.String() }
