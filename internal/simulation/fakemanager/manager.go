package fakemanager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// Options are what a [Manager] is made of. All fields are required.
type Options struct {
	Context             context.Context // of the process: its end stops the controllers and informers
	Scheme              *runtime.Scheme
	Server              *memoryserver.Server
	Client              client.Client // what GetClient returns
	APIReader           client.Reader // what GetAPIReader returns
	Logger              logr.Logger
	EventRecorder       recorder.EventRecorder
	LegacyEventRecorder record.EventRecorder

	// Cause returns why requests are enqueued at this moment, for the trace. Requests of one batch have no order among
	// them: the queue sorts them by name.
	Cause func() (batch int, cause string)
	// Pass is called for each reconcile, on the worker's goroutine, and calls reconcile.
	Pass func(target Target, cause string, reconcile func() (ctrl.Result, error)) (ctrl.Result, error)
	// Fail ends the run with an error.
	Fail func(error)
}

// Manager is a manager.Manager whose cache and queues move when its owner says so.
type Manager struct {
	options     Options
	cache       *Cache
	controllers []*Controller
	runnables   []manager.Runnable
	converter   conversion.Registry
	elected     chan struct{}
}

var _ manager.Manager = &Manager{}

// New returns a manager without controllers. Its cache shows the server as it is now.
func New(o Options) *Manager {
	m := &Manager{options: o, cache: newCache(&o), converter: conversion.NewRegistry(), elected: make(chan struct{})}
	close(m.elected)
	return m
}

// Cache returns the manager's cache.
func (m *Manager) Cache() *Cache { return m.cache }

// Controllers returns the controllers that were added, in their order.
func (m *Manager) Controllers() []*Controller { return m.controllers }

// Deliver shows the oldest change that the cache does not show yet, and calls the event handlers of its kind. It returns
// the change, nil if there is none. First it calls before, with the change.
func (m *Manager) Deliver(before func(*memoryserver.Change)) (*memoryserver.Change, error) {
	kind, change := m.cache.next()
	if change == nil {
		return nil, nil
	}
	before(change)
	var errs []error
	for _, h := range m.cache.handlers(kind) {
		errs = append(errs, h.handle(change.Old, change.New))
	}
	for _, c := range m.controllers {
		if c.forEach == nil {
			continue
		}
		c.enqueueEach(context.Background())
		if change.New == nil && change.GVK == *c.forEach {
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

// EnqueueEach enqueues a request for every object of the kinds that were added by [Manager.AddReconciler].
func (m *Manager) EnqueueEach() {
	for _, c := range m.controllers {
		if c.forEach != nil {
			c.enqueueEach(m.options.Context)
		}
	}
}

// AddReconciler adds a controller without watches: the reconciler is called for every object of the kind whenever any
// object of any kind changes.
func (m *Manager) AddReconciler(gvk schema.GroupVersionKind, reconciler ctrlreconcile.Reconciler) {
	m.cache.watchEverything()
	c := m.newController(gvk.Kind)
	c.forEach = &gvk
	c.do = &wrappedReconciler{controller: c, Reconciler: reconciler}
	m.controllers = append(m.controllers, c)
}

// NextDue returns when the next delayed request becomes ready, and its controller, nil if there is none. Requests that
// were attempted enough times do not count, unless they are retries after an error.
func (m *Manager) NextDue(attempts Attempts, enough int) (at time.Time, whose *Controller) {
	for _, c := range m.controllers {
		if due := c.queue.due(attempts[c], enough); !due.IsZero() && (at.IsZero() || due.Before(at)) {
			at, whose = due, c
		}
	}
	return at, whose
}

// Add takes a controller or something else to run.
func (m *Manager) Add(runnable manager.Runnable) error {
	if err := m.instrument(runnable); err != nil {
		return err
	}
	m.runnables = append(m.runnables, runnable)
	return nil
}

// Start returns an error: the simulation calls [Manager.Run] instead.
func (m *Manager) Start(context.Context) error {
	return errors.New("reconciletest starts the manager itself: do not call Start")
}

// Run starts all runnables and returns when they have ended.
func (m *Manager) Run(ctx context.Context) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, runnable := range m.runnables {
		group.Go(func() {
			if err := runnable.Start(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// Elected returns a channel that is closed: the process always leads.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// AddMetricsServerExtraHandler does nothing: there is no metrics server.
func (m *Manager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck does nothing: there is no health endpoint.
func (m *Manager) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck does nothing: there is no readiness endpoint.
func (m *Manager) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer returns a webhook server that is never started.
func (m *Manager) GetWebhookServer() webhook.Server { return webhook.NewServer(webhook.Options{}) }

// GetConverterRegistry returns a registry that nobody asks.
func (m *Manager) GetConverterRegistry() conversion.Registry { return m.converter }

// GetControllerOptions lets controllers of one name start again and again.
func (m *Manager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), Logger: m.GetLogger()}
}

// GetLogger returns the process's logger.
func (m *Manager) GetLogger() logr.Logger { return m.options.Logger }

// GetConfig returns a config whose clients return an error at every request: the server is not reached by HTTP.
func (m *Manager) GetConfig() *rest.Config {
	return &rest.Config{Host: "https://reconciletest.invalid", Transport: noServer{}}
}

// GetHTTPClient returns a client that returns an error at every request.
func (m *Manager) GetHTTPClient() *http.Client { return &http.Client{Transport: noServer{}} }

type noServer struct{}

func (noServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s %s: reconciletest's server is not reached by HTTP: use the manager's client", r.Method, r.URL.Path)
}

// GetCache returns [Manager.Cache].
func (m *Manager) GetCache() cache.Cache { return m.cache }

// GetScheme returns the scheme of the options.
func (m *Manager) GetScheme() *runtime.Scheme { return m.options.Scheme }

// GetClient returns the client of the options.
func (m *Manager) GetClient() client.Client { return m.options.Client }

// GetFieldIndexer returns [Manager.Cache].
func (m *Manager) GetFieldIndexer() client.FieldIndexer { return m.cache }

// GetRESTMapper returns the client's.
func (m *Manager) GetRESTMapper() meta.RESTMapper { return m.options.Client.RESTMapper() }

// GetAPIReader returns the reader of the options.
func (m *Manager) GetAPIReader() client.Reader { return m.options.APIReader }

// GetEventRecorder returns the recorder of the options.
func (m *Manager) GetEventRecorder(string) recorder.EventRecorder { return m.options.EventRecorder }

// GetEventRecorderFor returns the recorder of the options for the old API of events.
func (m *Manager) GetEventRecorderFor(string) record.EventRecorder {
	return m.options.LegacyEventRecorder
}
