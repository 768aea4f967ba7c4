package operatortest

import (
	"context"
	"sync"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile"
)

// Operator is an operator that runs in this process, wired as in its main.go.
type Operator struct {
	Requests *Requests

	passes passes
	stop   func()
}

// Start starts the operator that setup adds to a manager, and stops it when the test ends. The options need Scheme and Cache.
// Its log goes to the log of the test. Passes over objects of the type of primary are counted.
func Start(t testing.TB, access *rest.Config, options ctrl.Options, primary client.Object, setup func(ctrl.Manager) error, more ...reconcile.ManagerOption) *Operator {
	t.Helper()
	o, shown := &Operator{Requests: &Requests{}}, &log{t: t}
	options.Logger = testr.NewWithInterface(shown, testr.Options{LogTimestamp: true})
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.GracefulShutdownTimeout = new(Patience)   // the default of 30 seconds is over on a busy machine
	options.Controller.SkipNameValidation = new(true) // several in one process
	options.NewClient = o.passes.count(primary, options.NewClient)
	mgr, err := reconcile.NewManager(o.Requests.Count(access), options, more...)
	require.NoError(t, err)
	require.NoError(t, setup(mgr))

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
		utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport)
		shown.end()
	})
	t.Cleanup(o.stop)
	require.True(t, mgr.GetCache().WaitForCacheSync(t.Context()))
	return o
}

// Stop stops the operator and waits until it has ended. It may be called twice.
func (o *Operator) Stop() { o.stop() }

// Intercept returns a value for the field NewClient of a manager's options. The functions intercept the requests of the operator.
func Intercept(funcs interceptor.Funcs) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		c, err := client.NewWithWatch(config, options)
		if err != nil {
			return nil, err
		}
		return interceptor.NewClient(c, funcs), nil
	}
}

// log writes the log of an operator to the log of its test, until the operator has stopped. The event broadcaster of
// client-go may log something later, when the test has ended.
type log struct {
	t     testing.TB
	mu    sync.Mutex
	ended bool
}

// Helper does nothing: it may be called after the test has ended.
func (l *log) Helper() {}

func (l *log) Log(args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.t.Log(args...)
	}
}

func (l *log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}
