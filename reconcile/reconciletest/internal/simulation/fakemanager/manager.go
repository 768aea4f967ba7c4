package fakemanager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/opblocks/opblocks/internal/cacheselection"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
)

// Options are the parts of a [Manager]. All fields are required.
type Options struct {
	Context             context.Context // the context of the process: when it ends, the controllers end
	Scheme              *runtime.Scheme
	Server              *memoryserver.Server
	Client              client.Client     // what GetClient returns
	APIReader           client.Reader     // what GetAPIReader returns
	Transport           http.RoundTripper // what GetConfig and GetHTTPClient use
	Logger              logr.Logger
	EventRecorder       EventRecorder
	LegacyEventRecorder record.EventRecorder

	// Cause returns the number of the current batch, and why requests are enqueued now, for the trace. Requests of an earlier batch are
	// reconciled first. Requests of one batch are enqueued in any order, so they are sorted by name.
	Cause func() (batch int, cause string)
	// Pass is called for each reconcile, on the worker's goroutine. It must call reconcile and return its results.
	Pass func(target Target, cause string, reconcile func() (ctrl.Result, error)) (ctrl.Result, error)
	// Ended is called at the end of each pass of package reconcile that had something to do.
	Ended func(target Target, end passcontext.PassEnd)
	// Watched is called whenever the operator reads a kind from the cache or watches it. The cache holds only objects in
	// namespaces. [cache.AllNamespaces] stands for all. The cache's lock is held during the call.
	Watched func(gvk schema.GroupVersionKind, namespaces []string)
	// Fail ends the run with an error.
	Fail func(error)
	// Random fills a slice with random bytes, from which package ownedresources generates values of Secrets.
	Random func(into []byte)
}

// Manager has the methods of manager.Manager, except GetEventRecorder, which [Manager.AsManager] adds. Its cache changes only by
// [Manager.Deliver], and requests leave its queues only by [Manager.Take].
type Manager struct {
	cluster
	controllers []*Controller
	runnables   []manager.Runnable
	converter   conversion.Registry
	webhooks    *webhookServer
	elected     chan struct{}
}

// New returns a manager without controllers. Its cache shows the present state of the server.
func New(o Options) *Manager {
	m := &Manager{cluster: cluster{options: o, cache: newCache(&o)}, converter: conversion.NewRegistry(), webhooks: newWebhookServer(), elected: make(chan struct{})}
	close(m.elected)
	return m
}

// Cache returns the manager's cache.
func (m *Manager) Cache() *Cache { return m.cache }

var _ cacheselection.Manager = &Manager{}

// CacheSelection returns the rule that says which objects of a kind the cache holds.
func (m *Manager) CacheSelection(gvk schema.GroupVersionKind) cacheselection.Selection {
	return m.cache.Kinds.selectionOf(gvk)
}

// Controllers returns the controllers that were added, in their order.
func (m *Manager) Controllers() []*Controller { return m.controllers }

// Deliver makes the cache show the oldest change that it does not show yet, except changes of frozen kinds. It calls before with the
// change, then the event handlers of its kind, and returns the change. If there is none, it returns nil.
func (m *Manager) Deliver(before func(*memoryserver.Change)) (*memoryserver.Change, error) {
	kind, change := m.cache.Kinds.next()
	if change == nil {
		return nil, nil
	}
	before(change)
	errs := []error{m.cache.show(kind, change)}
	for _, c := range m.controllers {
		if c.forEach == nil {
			continue
		}
		c.enqueueEach(context.Background())
		if change.New == nil && change.GVK.GroupKind() == c.forEach.GroupKind() {
			c.Enqueue(change.Key)
		}
	}
	return change, errors.Join(errs...)
}

// EnqueueKnown enqueues a request for every object that was reconciled before.
func (m *Manager) EnqueueKnown() {
	for _, c := range m.controllers {
		c.enqueueKnown()
	}
}

// EnqueueEach enqueues a request for every object of the kinds that [Manager.AddReconciler] was called with.
func (m *Manager) EnqueueEach() {
	for _, c := range m.controllers {
		if c.forEach != nil {
			c.enqueueEach(m.options.Context)
		}
	}
}

// AddReconciler adds a controller without watches. Whenever any object of any kind changes, the reconciler is called for every object of
// the given kind.
func (m *Manager) AddReconciler(gvk schema.GroupVersionKind, reconciler ctrlreconcile.Reconciler) {
	m.cache.Kinds.watchEverything()
	c := m.newController(gvk.Kind)
	c.forEach = &gvk
	c.do = &wrappedReconciler{controller: c, Reconciler: reconciler}
	m.controllers = append(m.controllers, c)
}

// NextDue returns when the next delayed request becomes ready, and its controller. If there is none, the controller is nil. It ignores
// requests with enough attempts, unless they are retries after an error.
func (m *Manager) NextDue(attempts Attempts, enough int) (at time.Time, whose *Controller) {
	for _, c := range m.controllers {
		if due := c.queue.due(attempts[c], enough); !due.IsZero() && (at.IsZero() || due.Before(at)) {
			at, whose = due, c
		}
	}
	return at, whose
}

// Add registers a controller or another runnable.
func (m *Manager) Add(runnable manager.Runnable) error {
	if err := m.instrument(runnable); err != nil {
		return err
	}
	m.runnables = append(m.runnables, runnable)
	return nil
}

// Start returns an error, since the simulation runs the manager by [Manager.Run].
func (m *Manager) Start(context.Context) error {
	return errors.New("reconciletest starts the manager itself: do not call Start")
}

// Run starts all runnables and returns when they have ended. If one fails, Run ends the others and returns the error, as the manager of
// controller-runtime does.
func (m *Manager) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	var once sync.Once
	var first error
	for _, runnable := range m.runnables {
		group.Go(func() {
			if err := failure.Recover("a runnable of the manager", func() error { return runnable.Start(ctx) }); err != nil {
				once.Do(func() { first = err; end() })
			}
		})
	}
	group.Wait()
	if undefined := m.cache.lastUndefined(); first != nil && undefined != nil {
		return fmt.Errorf("%w\n%w: if the scenario lacks its custom resource definition, add the file to CRDs", first, undefined)
	}
	return first
}

// Elected returns a channel that is closed: the process always leads.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// AddMetricsServerExtraHandler does nothing: the manager has no metrics server.
func (m *Manager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck does nothing: the manager has no health endpoint.
func (m *Manager) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck does nothing: the manager has no readiness endpoint.
func (m *Manager) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer returns a webhook server that never listens. The API server in memory calls its handlers.
func (m *Manager) GetWebhookServer() webhook.Server { return m.webhooks }

// GetConverterRegistry returns the registry of the converters, which the webhook of conversions uses.
func (m *Manager) GetConverterRegistry() conversion.Registry { return m.converter }

// GetControllerOptions returns options that allow several controllers of one name: each simulated process has its own.
func (m *Manager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), Logger: m.GetLogger()}
}
