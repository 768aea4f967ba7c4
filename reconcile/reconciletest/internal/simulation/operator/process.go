package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/httpapi"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Process is one process of the operator. After its death its requests and effects are refused.
type Process struct {
	operator *Operator
	number   int
	ctx      context.Context
	end      context.CancelFunc
	client   *recordingClient
	recorder *eventRecorder
	Mgr      *fakemanager.Manager
	managed  bool         // the operator has called Manager
	bound    int          // the bound of HashLargeValues; 0: it was not called
	refused  atomic.Int64 // how many requests were refused after its death

	Dead bool  // guarded by the run's lock
	Pass *pass // the pass that runs, or nil; guarded by the run's lock
}

var errDead = fmt.Errorf("the process has ended: %w", context.Canceled)

func newProcess(o *Operator, number int) *Process {
	p := &Process{operator: o, number: number}
	p.ctx, p.end = context.WithCancel(bubble.WithHooks(passcontext.WithConcurrency(context.Background(), p.sendBatch)))
	p.client = &recordingClient{process: p, live: o.world.Server.Client()}
	p.recorder = &eventRecorder{process: p}
	transport := &httpapi.Transport{
		Context: p.ctx, Server: o.world.Server, Client: p.client, Reader: p.APIReader(), Refuse: p.refuseIfDead,
		Watch: func(gvk schema.GroupVersionKind, from int64, handle func(*memoryserver.Change) error) (int64, func()) {
			return p.Mgr.Cache().Watch(gvk, from, handle)
		},
	}
	p.Mgr = fakemanager.New(fakemanager.Options{
		Context: p.ctx, Scheme: o.world.Scheme, Server: o.world.Server, Client: p.client, APIReader: p.APIReader(), Transport: transport,
		Logger: newLogger(p), EventRecorder: p.recorder, LegacyEventRecorder: p.LegacyEventRecorder(),
		Cause: o.cause, Pass: p.runPass, Ended: VerdictOf(o).stepsEnded, Fail: o.world.Failures.Add, Watched: o.world.Rights.AddWatch, Random: o.world.ReadRandom,
	})
	return p
}

// Context returns a context that is cancelled when the process dies.
func (p *Process) Context() context.Context { return p.ctx }

// CacheUnstructured makes the manager's client read unstructured objects from the cache too.
func (p *Process) CacheUnstructured() { p.client.unstructured = true }

// HashLargeValues makes the cache hash Secrets and ConfigMaps of more than bound bytes: see package hashedvalues.
func (p *Process) HashLargeValues(bound int) {
	p.bound = bound
	p.Mgr.Cache().Kinds.Restrict(hashedvalues.Options(cache.Options{}, bound))
}

// Client returns the manager's client. It reads from the cache, except unstructured objects by default.
func (p *Process) Client() client.Client { return p.client }

// APIReader returns a reader of the API server.
func (p *Process) APIReader() client.Reader { return apiReader{p.client} }

// Config returns a config whose clients reach the API server as the manager's client does.
func (p *Process) Config() *rest.Config { return p.Mgr.GetConfig() }

// FieldIndexer returns the indexer of the cache.
func (p *Process) FieldIndexer() client.FieldIndexer { return p.Mgr.Cache() }

// EventRecorder returns a recorder that records events in the trace.
func (p *Process) EventRecorder() events.EventRecorder { return p.recorder }

// LegacyEventRecorder is EventRecorder for the old API of events.
func (p *Process) LegacyEventRecorder() record.EventRecorder { return legacyRecorder{p.recorder} }

// External returns what the scenario's External returned for this run, nil if it has none.
func (p *Process) External() world.External { return p.operator.world.External }

// Manager returns the process's manager, with its cache restricted by the options.
func (p *Process) Manager(options ...cache.Options) manager.Manager {
	p.managed = true
	for _, o := range options {
		if p.bound > 0 {
			o = hashedvalues.Options(o, p.bound)
		}
		p.Mgr.Cache().Kinds.Restrict(o)
	}
	return p.Mgr.AsManager()
}

// Reconcile registers a reconciler that is called for every object of the kind whenever anything changes.
func (p *Process) Reconcile(kind client.Object, reconciler ctrlreconcile.Reconciler) {
	gvk, err := apiutil.GVKForObject(kind, p.operator.world.Scheme)
	if err != nil {
		p.operator.world.Failures.Add(fmt.Errorf("kind of %T: %w: add its types to the scheme", kind, err))
		return
	}
	p.Mgr.AddReconciler(gvk, reconciler)
}

// Effect calls do, which changes something outside of the cluster, unless a fault or the end of the process prevents it.
func (p *Process) Effect(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &request.Call{Request: request.Request{Verb: "effect", External: name}}, func(bool) error { return do() })
}

// Query is like Effect, for a function that only reads something outside of the cluster.
func (p *Process) Query(ctx context.Context, name string, do func() error) error {
	return p.send(ctx, &request.Call{Request: request.Request{Verb: "query", External: name}}, func(bool) error { return do() })
}

// RoundTripper returns the transport of an HTTP client. Each of its requests to the peer is a query or an effect.
func (p *Process) RoundTripper(peer http.Handler) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		verb := "effect"
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			verb = "query"
		}
		c := &request.Call{Request: request.Request{Verb: verb, External: r.Method + " " + r.URL.Path}, HTTP: true}
		err := p.send(r.Context(), c, func(bool) error {
			peer.ServeHTTP(recorder, r)
			return nil
		})
		if refused, ok := errors.AsType[outside.Refusal](err); ok {
			recorder.Header().Set("Retry-After", "1")
			http.Error(recorder, refused.Error(), refused.Status)
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

// Die ends the process: its requests are refused from now on. The caller holds the run's lock.
func (p *Process) Die() {
	p.Dead = true
	p.end()
}

// EndByConnection ends the run with an error because the operator opens a real connection. It also ends the process, so that its context is
// cancelled. It is called on a goroutine of the operator.
func (o *Operator) EndByConnection(err error) {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if p := o.Leader; p != nil && !p.Dead {
		o.world.Failures.AddLocked(err)
		p.Die()
	}
}

// isDead reports whether the process has died. The caller must not hold the run's lock.
func (p *Process) isDead() bool {
	p.operator.world.Mu.Lock()
	defer p.operator.world.Mu.Unlock()
	return p.Dead
}

// startRemedy says what to do if Start does not return.
const startRemedy = "Start sets up the process and returns, as main does before it starts the manager; what waits or works on belongs in a runnable (Manager.Add)"

// start calls the scenario's Start, and then runs the manager.
func (p *Process) start() error {
	webhooks := p.Mgr.GetWebhookServer().WebhookMux()
	if p.number == 1 {
		p.operator.world.Server.ServeWebhooks(webhooks)
	}
	if err := failure.Call("Start", startRemedy, func() error { return p.operator.setUp(p) }); err != nil {
		if p.isDead() { // Start failed only because its requests were refused
			return nil
		}
		return failure.StartError{Err: fmt.Errorf("%w%s", err, bubble.Hint(err))}
	}
	p.operator.world.Server.ServeWebhooks(webhooks) // until now the webhooks of the former process were called
	if !p.managed && len(p.Mgr.Controllers()) == 0 {
		return errors.New("start: there is nothing to run: register a reconciler with Process.Reconcile, or a controller with Process.Manager")
	}
	p.Mgr.EnqueueEach()
	if p.managed {
		go func() {
			if err := p.Mgr.Run(p.ctx); err != nil {
				p.operator.endedItself(p, fmt.Errorf("the manager ended: %w", err))
			}
		}()
	}
	return nil
}
