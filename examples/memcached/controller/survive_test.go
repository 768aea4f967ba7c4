package controller_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestSurvivesEveryFault(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, cachev1alpha1.AddToScheme(scheme))
	memcached := sample(2)
	memcached.UID, memcached.Generation = "", 0
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"../config/crd/bases"},
		Start: func(p *reconciletest.Process) error {
			return controller.SetupWithManager(p.Manager(controller.Cache()))
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(memcached),
			reconciletest.Change(memcached, func(m *cachev1alpha1.Memcached) { m.Spec.Size = 3 }),
			reconciletest.Delete(memcached),
		},
	})
}
