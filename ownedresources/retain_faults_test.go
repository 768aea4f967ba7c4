//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// retainSet returns a set of one ConfigMap, which stays when a shop with keepData is deleted.
func retainSet() *ChildSet[*Shop] {
	return Ensure(Build(func(owner *Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-data"}, Data: map[string]string{"made": "by " + owner.Name}}
	}).Adopt().Retain(func(owner *Shop) bool { return owner.Spec.KeepData }))
}

// deleteShopWith deletes the shop with a propagation policy.
func deleteShopWith(policy metav1.DeletionPropagation) reconciletest.Action {
	return reconciletest.Do("delete the shop with propagation "+string(policy), func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, newShop(), client.PropagationPolicy(policy)))
	})
}

// TestRetainSurvivesEveryFault deletes a shop in each way. The faults at its first creation are tried only in the scenario
// "Background".
func TestRetainSurvivesEveryFault(t *testing.T) {
	keepData := func(keep bool) func(*ShopSpec) { return func(s *ShopSpec) { s.KeepData = keep } }
	owner := newShop(keepData(true))
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-data"}}
	tests := map[string]struct {
		reason  string
		actions []reconciletest.Action
	}{
		"Background": {
			reason: "It stays, and the next owner adopts it. A change right before the deletion counts.",
			actions: []reconciletest.Action{
				reconciletest.Create(owner), changeShop(keepData(false)), changeShop(keepData(true)), reconciletest.Delete(owner),
				reconciletest.Create(owner), reconciletest.Delete(owner),
			},
		},
		"Foreground": {
			reason:  "The garbage collector is faster than the finalizer, and finds no reference.",
			actions: []reconciletest.Action{reconciletest.Create(owner).WithoutFaults(), annotateShop(), deleteShopWith(metav1.DeletePropagationForeground)},
		},
		"Orphan": {
			reason:  "It stays anyway, and keeps its marks.",
			actions: []reconciletest.Action{reconciletest.Create(owner).WithoutFaults(), annotateShop(), deleteShopWith(metav1.DeletePropagationOrphan)},
		},
		"ByForce": {
			reason:  "It stays without the finalizer too.",
			actions: []reconciletest.Action{reconciletest.Create(owner).WithoutFaults(), annotateShop(), removeShopByForce(), reconciletest.Create(owner)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			reconciletest.Explore(t, withShops(reconciletest.Scenario{
				Start:   startSet(retainSet),
				Actions: tc.actions,
				// The label and the annotation name the last owner, which depends on when the owners were deleted.
				Ignore: reconciletest.Ignore{Fields: map[string][]string{"ConfigMap": {"metadata.labels." + record.OwnerUID, "metadata.annotations." + record.Owner}}},
				Finally: func(env *reconciletest.Env) error {
					return env.Get(context.Background(), client.ObjectKeyFromObject(data), data.DeepCopy())
				},
			}))
		})
	}
}
