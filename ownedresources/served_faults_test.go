//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// Two children have the option IfServed. The API server serves the kind of only one of them.
func TestIfServedSurvivesEveryFault(t *testing.T) {
	monitorKind := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	set := func() *ChildSet[*Shop] {
		served := Build(func(owner *Shop) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"content": owner.Spec.Content}}
		}).IfServed("Settings")
		unserved := Build(func(owner *Shop) *unstructured.Unstructured {
			monitor := &unstructured.Unstructured{}
			monitor.SetName(owner.Name)
			return monitor
		}).IfServed("Monitoring").Kind(monitorKind)
		after := Build(func(owner *Shop) *corev1.Service {
			return NewService(owner, map[string]string{"app": owner.Name}, corev1.ServicePort{Name: "http", Port: 80})
		}).After(unserved, served)
		return Ensure(after, unserved, served).RemoveInOrder()
	}
	owner := newShop(withContent("a"))
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Start: startSet(set),
		Always: func(env *reconciletest.Env) error {
			var seen Shop
			if err := env.Get(t.Context(), client.ObjectKeyFromObject(owner), &seen); err != nil {
				return client.IgnoreNotFound(err)
			}
			for conditionType, want := range map[string]string{"Monitoring": "KindNotServed", "Settings": "KindServed"} {
				condition := meta.FindStatusCondition(seen.Status.Conditions, conditionType)
				if meta.IsStatusConditionTrue(seen.Status.Conditions, "Ready") && (condition == nil || condition.Reason != want) {
					return fmt.Errorf("the owner is ready and its condition is %v: want the reason %s", condition, want)
				}
			}
			return nil
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			changeShop(withContent("b")),
			reconciletest.Delete(&corev1.ConfigMap{ObjectMeta: owner.ObjectMeta}),
			reconciletest.Delete(owner),
		},
	}))
}
