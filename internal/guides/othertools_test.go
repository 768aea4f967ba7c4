//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// ShopReconciler keeps the name and the fields of the scaffold, so cmd/main.go does not change.
type ShopReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// SetupWithManager adds the controller to a manager.
func (r *ShopReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcile.For(mgr, shopSteps()...).Complete()
}

func shopSteps() []reconcile.NamedStep[*Shop] {
	return []reconcile.NamedStep[*Shop]{
		reconcile.Named("workload", ownedresources.Ensure(
			ownedresources.Build(deployment),
			ownedresources.Build(service))),
	}
}

// TestScaffold explores the reconciler of the scaffold with the actions of the other tests, and without faults. The reconciler builds the
// children of SetupShop, for which another test tries every fault.
func TestScaffold(t *testing.T) {
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"}, Actions: actions(), Options: reconciletest.Options{WithoutFaults: true},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager()
			return (&ShopReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
		},
	})
}
