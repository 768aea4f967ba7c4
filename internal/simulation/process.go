package simulation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
)

// processes are the operator's processes in a run. The run's lock guards them. Only the goroutine that drives the run
// replaces the leader, so that goroutine reads the leader without the lock.
type processes struct {
	leader  *Process
	started int          // how many so far
	died    bool         // at least one has died and was replaced
	down    bool         // the next one starts only after the user's next action
	waiting *waitingPass // asks for a leader change; nil: none is asked for
}

// Process is one process of the operator. After its death its requests and effects are refused.
type Process struct {
	run      *Run
	number   int
	ctx      context.Context
	end      context.CancelFunc
	client   *recordingClient
	recorder *eventRecorder
	manager  *fakemanager.Manager
	managed  bool         // the operator called Manager
	refused  atomic.Int64 // how many requests were refused after its death

	dead bool  // guarded by the run's lock
	pass *pass // the pass that runs, nil if none does; guarded by the run's lock
}

var errDead = fmt.Errorf("the process has ended: %w", context.Canceled)

func newProcess(r *Run, number int) *Process {
	p := &Process{run: r, number: number}
	p.ctx, p.end = context.WithCancel(passcontext.WithConcurrency(context.Background(), p.sendBatch))
	p.client = &recordingClient{process: p, live: r.server.Client()}
	p.recorder = &eventRecorder{process: p}
	p.manager = fakemanager.New(fakemanager.Options{
		Context: p.ctx, Scheme: r.scenario.Scheme, Server: r.server, Client: p.client, APIReader: p.APIReader(),
		Logger: newLogger(p), EventRecorder: p.EventRecorder(), LegacyEventRecorder: p.LegacyEventRecorder(),
		Cause: r.cause, Pass: p.runPass, Fail: r.fail, Watched: r.rights.addWatch, Random: r.readRandom,
	})
	return p
}

// Context returns a context that is cancelled when the process dies.
func (p *Process) Context() context.Context { return p.ctx }

// Client returns the manager's client. It reads from the cache, except unstructured objects.
func (p *Process) Client() client.Client { return p.client }

// APIReader returns a reader of the API server.
func (p *Process) APIReader() client.Reader { return apiReader{p.client} }

// FieldIndexer returns the indexer of the cache.
func (p *Process) FieldIndexer() client.FieldIndexer { return p.manager.Cache() }

// EventRecorder returns a recorder that records events in the trace.
func (p *Process) EventRecorder() recorder.EventRecorder { return p.recorder }

// LegacyEventRecorder is EventRecorder for the old API of events.
func (p *Process) LegacyEventRecorder() record.EventRecorder { return legacyRecorder{p.recorder} }

// External returns what the scenario's External returned for this run, nil if it has none.
func (p *Process) External() External { return p.run.external }

// Manager returns the process's manager, with its cache restricted by the options.
func (p *Process) Manager(options ...cache.Options) manager.Manager {
	p.managed = true
	for _, o := range options {
		p.manager.Cache().Restrict(o)
	}
	return p.manager
}

// Reconcile registers a reconciler that is called for every object of the kind whenever anything changes.
func (p *Process) Reconcile(kind client.Object, reconciler ctrlreconcile.Reconciler) {
	gvk, err := apiutil.GVKForObject(kind, p.run.scenario.Scheme)
	if err != nil {
		p.run.fail(fmt.Errorf("kind of %T: %w: add its types to the scheme", kind, err))
		return
	}
	p.manager.AddReconciler(gvk, reconciler)
}

// Effect calls do, which changes something outside of the cluster, unless a fault or the end of the process prevents it.
func (p *Process) Effect(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &call{Request: Request{Verb: "effect", External: name}}, func(bool) error { return do() })
}

// Query is Effect for a function that only reads something outside of the cluster.
func (p *Process) Query(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &call{Request: Request{Verb: "query", External: name}}, func(bool) error { return do() })
}

// RoundTripper returns the transport of an HTTP client. Each of its requests to the peer is a query or an effect.
func (p *Process) RoundTripper(peer http.Handler) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		verb := "effect"
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			verb = "query"
		}
		c := &call{Request: Request{Verb: verb, External: r.Method + " " + r.URL.Path}, http: true}
		err := p.send(r.Context(), c, func(bool) error {
			peer.ServeHTTP(recorder, r)
			return nil
		})
		if refused, ok := errors.AsType[httpError](err); ok {
			recorder.Header().Set("Retry-After", "1")
			http.Error(recorder, refused.Error(), int(refused))
			err = nil
		}
		if err != nil {
			return nil, err
		}
		return recorder.Result(), nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// httpError is the HTTP status that a fault returns instead of the peer's answer.
type httpError int

// Error returns the status and its text.
func (e httpError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }

// die ends the process: its requests are refused from now on. The caller holds the run's lock.
func (p *Process) die() {
	p.dead = true
	p.end()
}

// isDead reports whether the process has died. The caller must not hold the run's lock.
func (p *Process) isDead() bool {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	return p.dead
}

// start calls the scenario's Start, and runs what it set up.
func (p *Process) start() error {
	if err := recoverPanic("Start", func() error { return p.run.scenario.Start(p) }); err != nil {
		if p.isDead() { // Start failed since its requests were refused
			return nil
		}
		return fmt.Errorf("start: %w", err)
	}
	if !p.managed && len(p.manager.Controllers()) == 0 {
		return errors.New("start: there is nothing to run: register a reconciler with Process.Reconcile, or a controller with Process.Manager")
	}
	p.manager.EnqueueEach()
	if p.managed {
		go func() {
			if err := p.manager.Run(p.ctx); err != nil && !p.isDead() {
				p.run.fail(fmt.Errorf("the manager ended: %w", err))
			}
		}()
	}
	return nil
}

// startProcess starts a process and makes it the leader.
func (r *Run) startProcess() {
	r.mu.Lock()
	r.processes.started++
	p := newProcess(r, r.processes.started)
	if next := r.timeTravel.next; next != nil {
		p.manager.Cache().BeginInThePast(next.Past, r.history.changes)
		r.timeTravel.next, r.timeTravel.happened = nil, true
	}
	r.processes.leader = p
	r.mu.Unlock()
	if p.number > 1 {
		r.trace.add(row{what: fmt.Sprintf("process %d starts", p.number)})
	}
	r.setCause("start")
	if err := p.start(); err != nil {
		r.fail(err)
	}
}

// replaceDeadProcess starts the first process, or one in place of a dead one, after the rest of the cluster has worked. It
// reports false if a process runs, or none may start before the user's next action.
func (r *Run) replaceDeadProcess() bool {
	r.mu.Lock()
	old := r.processes.leader
	if old != nil && (!old.dead || r.processes.down) {
		r.mu.Unlock()
		return false
	}
	if old != nil {
		r.processes.died = true
	}
	r.mu.Unlock()
	if old != nil {
		time.Sleep(restartTime)
		for range maxClusterSteps {
			if !r.stepCluster() {
				break
			}
		}
	}
	r.startProcess()
	return true
}

// isDown reports whether no process runs, and none may start before the user's next action.
func (r *Run) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes.down
}

// endDowntime allows the next process to start.
func (r *Run) endDowntime() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes.down = false
}
