package upgrade

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/opblocks/opblocks/internal/cacheselection"
	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/step"
	"github.com/opblocks/opblocks/reconcile"
)

// manager is the manager of a plan. It starts the watches of the controllers, so that caches and indexes are filled as in the operator.
// It starts no workers, so nothing is reconciled.
type manager struct {
	ctrl.Manager
	planned []step.Planned
	leftOut []string
	warming sync.WaitGroup // done when the watches of all controllers have synced
}

var _ step.Planner = &manager{}

func newManager(access *rest.Config, options ctrl.Options) (*manager, error) {
	server, _, err := rest.DefaultServerUrlFor(access)
	if err != nil {
		return nil, err
	}
	access = rest.CopyConfig(access)
	access.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return readOnly{inner, strings.TrimSuffix(server.Path, "/")}
	})
	options.LeaderElection = false
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.HealthProbeBindAddress, options.PprofBindAddress = "0", "0"
	options.Controller.EnableWarmup = new(true)
	options.Controller.SkipNameValidation = new(true) // the operator itself may have controllers of the same names in this process, as in a test
	if options.Logger.GetSink() == nil {
		options.Logger = logr.New(log.NullLogSink{}) // the plan itself reports what has failed
	}
	newClient := options.NewClient
	if newClient == nil {
		newClient = client.New
	}
	options.NewClient = func(config *rest.Config, o client.Options) (client.Client, error) {
		c, err := newClient(config, o)
		if err != nil {
			return nil, err
		}
		return client.NewDryRunClient(c), nil
	}
	mgr, err := reconcile.NewManager(access, options)
	if err != nil {
		return nil, err
	}
	return &manager{Manager: mgr}, nil
}

var _ cacheselection.Manager = &manager{}

// CacheSelection returns which objects of a kind the cache holds.
func (m *manager) CacheSelection(gvk schema.GroupVersionKind) cacheselection.Selection {
	known, ok := m.Manager.(cacheselection.Manager)
	if !ok {
		return cacheselection.Selection{}
	}
	return known.CacheSelection(gvk)
}

// AddPlanned adds a reconciler to the plan.
func (m *manager) AddPlanned(p step.Planned) { m.planned = append(m.planned, p) }

// controller has the methods by which the manager identifies a controller of controller-runtime.
type controller interface {
	ctrlmanager.LeaderElectionRunnable
	Warmup(ctx context.Context) error
}

// readsOnly is a runnable of this module that only reads.
type readsOnly interface{ ReadsOnly() }

// Add starts only the watches of a controller. It starts a runnable of another type only if that only reads.
func (m *manager) Add(runnable ctrlmanager.Runnable) error {
	switch r := runnable.(type) {
	case controller:
		m.warming.Add(1)
		return m.Manager.Add(everywhere(func(ctx context.Context) error {
			defer m.warming.Done()
			return r.Warmup(ctx)
		}))
	case readsOnly:
		return m.Manager.Add(runnable)
	}
	m.leftOut = append(m.leftOut, fmt.Sprintf("%T, which the operator adds to its manager, did not run.", runnable))
	return nil
}

// everywhere is a runnable that does not need leadership.
type everywhere ctrlmanager.RunnableFunc

func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

func (everywhere) NeedLeaderElection() bool { return false }

// GetWebhookServer returns a server that is never started.
func (*manager) GetWebhookServer() webhook.Server { return webhook.NewServer(webhook.Options{}) }

// GetEventRecorderFor returns a recorder that drops events.
func (*manager) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

// silentManager is a manager whose GetEventRecorder returns a recorder that drops events. The recorder has the type R.
type silentManager[R any] struct {
	*manager
	recorder R
}

func (m silentManager[R]) GetEventRecorder(string) R { return m.recorder }

// silent returns the manager with a recorder that drops events. Go infers R from a method expression: R is events.EventRecorder in
// controller-runtime v0.24, and recorder.EventRecorder in later versions.
func silent[R any](m *manager, _ func(ctrl.Manager, string) R) ctrl.Manager {
	return any(silentManager[R]{m, any(&events.FakeRecorder{}).(R)}).(ctrl.Manager)
}

// plan starts the caches, plans all objects, and stops.
func (m *manager) plan(ctx context.Context, o Options) (*forecast.Report, error) {
	if len(m.planned) == 0 {
		return nil, errors.New("there is nothing to plan: the set-up added neither a reconciler of package reconcile nor a set to the manager")
	}
	for _, p := range m.planned {
		if _, err := m.GetRESTMapper().RESTMapping(p.Kind.GroupKind(), p.Kind.Version); meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the API server does not serve %s, so there is nothing to plan: %w", p.Kind.Kind, err)
		}
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	w := &walk{manager: m, options: o, report: &forecast.Report{LeftOut: m.leftOut}}
	looked := false
	if err := m.Manager.Add(everywhere(func(ctx context.Context) error {
		defer stop()
		if !waitFor(ctx, &m.warming) {
			return nil
		}
		looked = true
		walking, end := context.WithCancel(running) // ends with the caller's context, or when the manager ends
		defer end()
		defer context.AfterFunc(ctx, end)()
		return w.all(walking)
	})); err != nil {
		return nil, err
	}
	if err := m.Start(running); err != nil {
		return nil, err
	}
	if !looked {
		return nil, fmt.Errorf("the plan was stopped before its caches were filled: %w", context.Cause(ctx))
	}
	return w.report, nil
}

// waitFor waits until the group is done. If the context ends before that, waitFor returns false.
func waitFor(ctx context.Context, group *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Wait()
	}()
	select {
	case <-done:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
