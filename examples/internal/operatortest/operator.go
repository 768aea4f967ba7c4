package operatortest

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile"
)

// Operator is an operator at work in this process, wired as in its main.go.
type Operator struct {
	Requests *Requests

	passes passes
	stop   func()
}

// Start starts the operator that setup sets up; it is stopped when the test ends. The options need Scheme and Cache. What
// it logs is shown with the test. The passes over objects of the type of primary are counted.
func Start(t testing.TB, access *rest.Config, options ctrl.Options, primary client.Object, setup func(ctrl.Manager) error) *Operator {
	t.Helper()
	o, shown := &Operator{Requests: &Requests{}}, &log{t: t}
	options.Logger = testr.NewWithInterface(shown, testr.Options{LogTimestamp: true})
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller = config.Controller{SkipNameValidation: new(true)} // several in one process
	options.NewClient = o.passes.count(primary, options.NewClient)
	mgr, err := reconcile.NewManager(o.Requests.Count(access), options)
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

// Stop ends the operator and returns when it has ended. It may be called twice.
func (o *Operator) Stop() { o.stop() }

// PerObject gives what was sent since the last call for each of some objects, with all of which the same was done.
func (o *Operator) PerObject(t *testing.T, c client.Client, objects ...client.Object) map[string]int {
	t.Helper()
	o.Pass(t, c, objects...)
	counts := o.Requests.Take()
	for what, n := range maps.All(counts) {
		assert.Zero(t, n%len(objects), "%d %s for %d objects", n, what, len(objects))
		counts[what] = n / len(objects)
	}
	return counts
}
