//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package ownedresources_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// Two children have the option IfServed. The server has the kind of one of them.
func TestIfServedSurvivesEveryFault(t *testing.T) {
	monitorKind := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	set := func() *ownedresources.ChildSet[*pool] {
		served := ownedresources.Build(func(owner *pool) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"min": owner.Spec.MinAvailable.String()}}
		}, ownedresources.IfServed("Settings"))
		unserved := ownedresources.Build(func(owner *pool) *unstructured.Unstructured {
			monitor := &unstructured.Unstructured{}
			monitor.SetName(owner.Name)
			return monitor
		}, ownedresources.IfServed("Monitoring")).Kind(monitorKind)
		after := ownedresources.Build(func(owner *pool) *corev1.Service {
			return ownedresources.NewService(owner, map[string]string{"app": owner.Name}, corev1.ServicePort{Name: "http", Port: 80})
		}).After(unserved, served)
		return ownedresources.Ensure(after, unserved, served).RemoveInOrder()
	}
	owner := &pool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))},
	}
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme.Scheme,
		Start: func(p *reconciletest.Process) error {
			return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", set())).Complete()
		},
		Always: func(env *reconciletest.Env) error {
			var seen pool
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
			reconciletest.Change(owner, func(p *pool) { p.Spec.MinAvailable = new(intstr.FromInt32(3)) }),
			reconciletest.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool"}}),
			reconciletest.Delete(owner),
		},
	})
}
