package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile"
)

// An index makes an informer before the start, for which the manager then waits.
func managerWithIndex(t *testing.T) ctrl.Manager {
	t.Helper()
	cp := controlPlane(t)
	nobody := cp.ConfigFor("nobody")
	mgr, err := reconcile.NewManager(nobody, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	return mgr
}

func index(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	require.NoError(t, mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.Secret{}, "any", func(client.Object) []string { return nil }))
}

func TestManagerEndsWhereListingIsNotPermitted(t *testing.T) {
	mgr := managerWithIndex(t)
	index(t, mgr)
	err := ended(t, t.Context(), mgr)
	require.ErrorContains(t, err, "the cache cannot start: ")
	require.ErrorContains(t, err, `resource "secrets" in API group "" at the cluster scope`)
	require.ErrorContains(t, err, "add the permission to the operator's role")
}

func TestManagerEndsBeforeItsCachesAreThere(t *testing.T) {
	cp := controlPlane(t)
	unreachable := cp.Config()
	mgr, err := reconcile.NewManager(unreachable, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	index(t, mgr)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, ended(t, ctx, mgr))
}

func ended(t *testing.T, ctx context.Context, mgr ctrl.Manager) error { //nolint:revive // t comes first in a test
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	select {
	case err := <-done:
		return err
	case <-time.After(eventually):
		t.Fatal("it does not end")
		return nil
	}
}
