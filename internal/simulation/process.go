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

	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
)

// processes are the operator's processes in a run. The run's lock guards them. Only the goroutine that drives the run
// replaces the leader, so it reads the leader without the lock.
type processes struct {
	leader  *Process
	started int          // how many so far
	died    bool         // one has
	down    bool         // the next one starts only after the user's next action
	waiting *waitingPass // of an old leader, while another replica leads
}

// Process is one process of the operator. When it has died its requests and effects are refused.
type Process struct {
	run      *Run
	number   int
	ctx      context.Context
	end      context.CancelFunc
	client   *recordingClient
	recorder *eventRecorder
	manager  *fakemanager.Manager
	managed  bool // the operator uses the manager
	refused  atomic.Int64

	dead bool  // guarded by the run's lock
	pass *pass // that runs; guarded by the run's lock
}

var errDead = fmt.Errorf("the process has ended: %w", context.Canceled)

func newProcess(r *Run, number int) *Process {
	p := &Process{run: r, number: number}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.client = &recordingClient{process: p, live: r.server.Client()}
	p.recorder = &eventRecorder{process: p}
	p.manager = fakemanager.New(fakemanager.Options{
		Context: p.ctx, Scheme: r.scenario.Scheme, Server: r.server, Client: p.client, APIReader: p.APIReader(),
		Logger: newLogger(p), EventRecorder: p.EventRecorder(), LegacyEventRecorder: p.LegacyEventRecorder(),
		Cause: r.cause, Pass: p.runPass, Fail: r.fail,
	})
	return p
}

// Context ends with the process.
func (p *Process) Context() context.Context { return p.ctx }

// Client returns the client that a manager has: it reads from the cache, except unstructured objects.
func (p *Process) Client() client.Client { return p.client }

// APIReader returns a reader of the API server.
func (p *Process) APIReader() client.Reader { return apiReader{p.client} }

// FieldIndexer returns the indexer of the cache.
func (p *Process) FieldIndexer() client.FieldIndexer { return p.manager.Cache() }

// EventRecorder returns a recorder that writes into the trace.
func (p *Process) EventRecorder() recorder.EventRecorder { return p.recorder }

// LegacyEventRecorder is EventRecorder for the old API of events.
func (p *Process) LegacyEventRecorder() record.EventRecorder { return legacyRecorder{p.recorder} }

// External returns what is outside of the cluster.
func (p *Process) External() External { return p.run.external }

// Manager returns the process's manager.
func (p *Process) Manager(options ...cache.Options) manager.Manager {
	p.managed = true
	for _, o := range options {
		p.manager.Cache().Restrict(o)
	}
	return p.manager
}

// Reconcile has the reconciler called for every object of the kind whenever anything changes.
func (p *Process) Reconcile(kind client.Object, reconciler ctrlreconcile.Reconciler) {
	gvk, err := apiutil.GVKForObject(kind, p.run.scenario.Scheme)
	if err != nil {
		p.run.fail(fmt.Errorf("kind of %T: %w: add its types to the scheme", kind, err))
		return
	}
	p.manager.AddReconciler(gvk, reconciler)
}

// Effect carries out do, which changes something outside of the cluster.
func (p *Process) Effect(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &call{Request: Request{Verb: "effect", External: name}}, func(bool) error { return do() })
}

// Query carries out do, which reads something outside of the cluster.
func (p *Process) Query(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &call{Request: Request{Verb: "query", External: name}}, func(bool) error { return do() })
}

// RoundTripper returns the transport of an HTTP client whose every request is a query or an effect.
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

// httpError is the status of an answer.
type httpError int

// Error returns the status and its text.
func (e httpError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }

// die ends the process: its requests are refused from now on. The caller holds the run's lock.
func (p *Process) die() {
	p.dead = true
	p.end()
}

// isDead is for callers that do not hold the run's lock.
func (p *Process) isDead() bool {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	return p.dead
}

// start calls the scenario's Start, and runs what it has set up.
func (p *Process) start() error {
	if err := recoverPanic("Start", func() error { return p.run.scenario.Start(p) }); err != nil {
		if p.isDead() { // its requests were refused
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

// startProcess starts a process, which leads from now on.
func (r *Run) startProcess() {
	r.mu.Lock()
	r.processes.started++
	p := newProcess(r, r.processes.started)
	if was := r.timeTravel.next; was != nil {
		p.manager.Cache().BeginInThePast(was.Past, r.history.changes)
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

// replaceDeadProcess starts a process if there is none, a while after the last one died.
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

// isDown reports whether no process runs until the user's next action.
func (r *Run) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes.down
}

// endDowntime allows a process to start again.
func (r *Run) endDowntime() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes.down = false
}
