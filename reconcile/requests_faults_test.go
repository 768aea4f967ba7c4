//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// outsideWorld is something outside of the cluster, which an object of the kind Relay describes. No event reports that
// somebody has changed it.
type outsideWorld struct{ changed atomic.Bool }

// State returns nothing to compare, because the time of the repair differs between runs: a process repairs the change in its first pass,
// and later only when a pass is requested.
func (*outsideWorld) State() any { return nil }

// TestRequestSurvivesEveryFault changes something outside of the cluster and requests a pass. It does this with every
// fault at every point. In the end the change is repaired, and the request is acknowledged.
func TestRequestSurvivesEveryFault(t *testing.T) {
	obj := &relay{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	annotate := func(key, value string) reconciletest.Action {
		return reconciletest.Change(obj, func(r *relay) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) })
	}
	request := func(value string) reconciletest.Action { return annotate(reconcile.RequestedAnnotation, value) }
	change := reconciletest.DoExternal("change what is outside", func(o *outsideWorld) error { o.changed.Store(true); return nil })
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: reconcile.RelayScheme(), CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &outsideWorld{} },
		Start: func(p *reconciletest.Process) error {
			synced := false
			sync := reconcile.Func(func(ctx context.Context, _ client.Client, _ *relay) error {
				if synced && !reconcile.Requested(ctx) {
					return nil
				}
				synced = false
				err := p.Effect(ctx, "repair", func() error { p.External().(*outsideWorld).changed.Store(false); return nil })
				synced = err == nil
				return err
			})
			return reconcile.For(p.Manager(), reconcile.Named("sync", sync)).WithPredicates(predicate.GenerationChangedPredicate{}).Complete()
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(obj), change, request("one"), change, annotate(reconcile.PausedAnnotation, "true"), request("two"),
			reconciletest.Change(obj, func(r *relay) { delete(r.Annotations, reconcile.PausedAnnotation) }),
			change, request("three"),
		},
		Finally: func(env *reconciletest.Env) error {
			var r relay
			if err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), &r); err != nil {
				return err
			}
			if r.Status.LastHandledReconcileAt != "three" {
				return fmt.Errorf("the status acknowledges %q", r.Status.LastHandledReconcileAt)
			}
			if env.External.(*outsideWorld).changed.Load() {
				return errors.New("what is outside is not repaired")
			}
			return nil
		},
	})
}
