package reconciletest_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var printed atomic.Int64 // the lines of controller-runtime's global logger

func init() {
	ctrl.SetLogger(funcr.New(func(string, string) { printed.Add(1) }, funcr.Options{}))
}

// An operator that logs by a logger of its own does not fill the console, except with -v.
func TestConsoleIsQuiet(t *testing.T) {
	before := printed.Load()
	reconciletest.ExploreQuietly(t, passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
		ctrl.Log.WithName("shop").Info("a pass")
		return ctrl.Result{}, nil
	}))
	assert.Equal(t, testing.Verbose(), printed.Load() > before)
	during := printed.Load()
	ctrl.Log.Info("after the exploration")
	assert.Equal(t, during+1, printed.Load())
}
