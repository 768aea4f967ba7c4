package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Process is the operator's process, from its start to its death. What it made in Start dies with
// it: from then on its context is cancelled and all its requests and effects are refused.
//
// The clock is package time's, which is virtual: it moves when nothing else is left to do.
type Process struct {
	run         *run
	number      int
	ctx         context.Context
	end         context.CancelFunc
	dead        bool // guarded by the run's lock
	cache       *processCache
	client      *processClient
	recorder    *eventRecorder
	controllers []*controller
	manager     *processManager
	pass        *pass // that runs
	refused     atomic.Int64
}

var errDead = fmt.Errorf("the process has ended: %w", context.Canceled)

func newProcess(r *run, number int) *Process {
	p := &Process{run: r, number: number}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.cache = newProcessCache(p)
	p.client = &processClient{process: p, live: r.server.Client()}
	p.recorder = &eventRecorder{process: p}
	return p
}

// Context ends with the process.
func (p *Process) Context() context.Context { return p.ctx }

// Client is what a manager's client is: it reads objects from a cache, except unstructured ones,
// and writes to the API server.
func (p *Process) Client() client.Client { return p.client }

// APIReader reads from the API server.
func (p *Process) APIReader() client.Reader { return apiReader{p.client} }

// FieldIndexer adds indexes to the cache.
func (p *Process) FieldIndexer() client.FieldIndexer { return p.cache }

// EventRecorder records events in the trace.
func (p *Process) EventRecorder() recorder.EventRecorder { return p.recorder }

// LegacyEventRecorder does so by the interface of the old API of events.
func (p *Process) LegacyEventRecorder() record.EventRecorder { return legacyRecorder{p.recorder} }

// External is what [Scenario.External] made for the run.
func (p *Process) External() External { return p.run.outside }

// Manager gives a manager for controllers that are set up as in production, with their watches, so
// that a missing one is found. Its cache can be restricted as a real one's: namespaces, labels and
// transformations of the options are kept, everything else in them is ignored.
//
// Do not start it: the run does. It serves neither metrics nor webhooks, and always leads.
func (p *Process) Manager(options ...cache.Options) manager.Manager {
	if p.manager == nil {
		p.manager = newProcessManager(p)
	}
	for _, o := range options {
		p.cache.restrict(o)
	}
	return p.manager
}

// Reconcile calls a reconciler without a controller: for every object of the kind whenever any
// object of any kind changes. That a watch is missing does not show.
func (p *Process) Reconcile(kind client.Object, reconciler ctrlreconcile.Reconciler) {
	gvk, err := apiutil.GVKForObject(kind, p.run.scenario.Scheme)
	if err != nil {
		p.run.fail(fmt.Errorf("kind of %T: %w: add its types to the scheme", kind, err))
		return
	}
	p.cache.watchEverything()
	c := newController(p, gvk.Kind)
	c.every = &gvk
	c.do = &observed{controller: c, Reconciler: reconciler}
	p.controllers = append(p.controllers, c)
}

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

// start runs what Start has set up.
func (p *Process) start() error {
	if err := guarded("Start", func() error { return p.run.scenario.Start(p) }); err != nil {
		if p.isDead() { // its requests were refused
			return nil
		}
		return fmt.Errorf("start: %w", err)
	}
	if p.manager == nil && len(p.controllers) == 0 {
		return errors.New("start: there is nothing to run: register a reconciler with Process.Reconcile, or a controller with Process.Manager")
	}
	for _, c := range p.controllers {
		if c.every != nil {
			c.enqueueAll(p.ctx)
		}
	}
	if p.manager != nil {
		go func() {
			if err := p.manager.run(p.ctx); err != nil && !p.isDead() {
				p.run.fail(fmt.Errorf("the manager ended: %w", err))
			}
		}()
	}
	return nil
}
