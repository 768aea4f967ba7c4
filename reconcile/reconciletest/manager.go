package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// processManager is a manager over a process's cache and client.
type processManager struct {
	process   *Process
	runnables []manager.Runnable
	converter conversion.Registry
	elected   chan struct{}
}

var _ manager.Manager = &processManager{}

func newProcessManager(p *Process) *processManager {
	m := &processManager{process: p, converter: conversion.NewRegistry(), elected: make(chan struct{})}
	close(m.elected)
	return m
}

// Add takes a controller or something else to run.
func (m *processManager) Add(runnable manager.Runnable) error {
	if err := adopt(m.process, runnable); err != nil {
		return err
	}
	m.runnables = append(m.runnables, runnable)
	return nil
}

// Start is the run's business.
func (m *processManager) Start(context.Context) error {
	return errors.New("reconciletest: the run starts the manager, do not start it in Start")
}

func (m *processManager) run(ctx context.Context) error {
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

func (m *processManager) Elected() <-chan struct{} { return m.elected }

func (m *processManager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }
func (m *processManager) AddHealthzCheck(string, healthz.Checker) error           { return nil }
func (m *processManager) AddReadyzCheck(string, healthz.Checker) error            { return nil }

func (m *processManager) GetWebhookServer() webhook.Server {
	return webhook.NewServer(webhook.Options{})
}

func (m *processManager) GetConverterRegistry() conversion.Registry { return m.converter }

// GetControllerOptions lets controllers of one name start again and again.
func (m *processManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), Logger: m.GetLogger()}
}

func (m *processManager) GetLogger() logr.Logger { return m.process.run.logger(m.process) }

// GetConfig and GetHTTPClient are for clients that are made besides: there is no server to reach by HTTP.
func (m *processManager) GetConfig() *rest.Config {
	return &rest.Config{Host: "https://reconciletest.invalid", Transport: noServer{}}
}

func (m *processManager) GetHTTPClient() *http.Client { return &http.Client{Transport: noServer{}} }

type noServer struct{}

func (noServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s %s: reconciletest's server is not reached by HTTP: use the manager's client", r.Method, r.URL.Path)
}

func (m *processManager) GetCache() cache.Cache                { return m.process.cache }
func (m *processManager) GetScheme() *runtime.Scheme           { return m.process.run.scenario.Scheme }
func (m *processManager) GetClient() client.Client             { return m.process.client }
func (m *processManager) GetFieldIndexer() client.FieldIndexer { return m.process.cache }
func (m *processManager) GetRESTMapper() meta.RESTMapper       { return m.process.client.RESTMapper() }
func (m *processManager) GetAPIReader() client.Reader          { return m.process.APIReader() }

func (m *processManager) GetEventRecorder(string) recorder.EventRecorder { return m.process.recorder }

func (m *processManager) GetEventRecorderFor(string) record.EventRecorder {
	return m.process.LegacyEventRecorder()
}
