package ownedresources_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// pool owns the children of the scenario. Its minAvailable is the number of shards.
type pool = policyv1.PodDisruptionBudget

func settingsOf(*pool) []types.NamespacedName { return []types.NamespacedName{{Name: "settings"}} }

// poolSet is a set with everything that orders and feeds children: a Deployment built from an input, a list that comes after
// it, and a ConfigMap by apply configuration that comes after the list and is built from the Deployment's live object.
func poolSet() *ownedresources.ChildSet[*pool] {
	settings := ownedresources.From(func(ctx context.Context, r client.Reader, owner *pool) (string, error) {
		var read corev1.ConfigMap
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "settings"}, &read)
		return read.Data["image"], err
	}, ownedresources.Reads(&corev1.ConfigMap{}, settingsOf))
	server := ownedresources.BuildFrom(settings, func(owner *pool, image string) (*appsv1.Deployment, error) {
		return ownedresources.NewDeployment(owner, nil, corev1.Container{Name: "server", Image: image}), nil
	}, ownedresources.KeepWhileMissing(func(live, desired *appsv1.Deployment) {
		desired.Spec.Template.Spec.Containers[0].Image = live.Spec.Template.Spec.Containers[0].Image
	}))
	shards := ownedresources.BuildEach(func(owner *pool) (all []*corev1.ConfigMap, err error) {
		for i := range owner.Spec.MinAvailable.IntValue() {
			all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(owner.Name, "-", i)}})
		}
		return all, nil
	}).After(server)
	index := ownedresources.BuildApplyFrom(&corev1.ConfigMap{}, ownedresources.Live[*appsv1.Deployment](server),
		func(owner *pool, live *appsv1.Deployment) (*corev1ac.ConfigMapApplyConfiguration, error) {
			return corev1ac.ConfigMap(owner.Name, owner.Namespace).WithData(map[string]string{
				"image": live.Spec.Template.Spec.Containers[0].Image, "shards": owner.Spec.MinAvailable.String(),
			}), nil
		}).After(shards)
	return ownedresources.Ensure(index, shards, server).RemoveInOrder()
}

func TestChildrenSurviveEveryFault(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "default", Name: "pool"}
	owner := &pool{ObjectMeta: named, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"image": "server:1"}}
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme.Scheme,
		Start: func(p *reconciletest.Process) error {
			return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", poolSet())).Complete()
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			reconciletest.Create(settings),
			reconciletest.Change(owner, func(p *pool) { p.Spec.MinAvailable = new(intstr.FromInt32(3)) }),
			reconciletest.Change(settings, func(m *corev1.ConfigMap) { m.Data["image"] = "server:2" }),
			reconciletest.Change(owner, func(p *pool) { p.Spec.MinAvailable = new(intstr.FromInt32(1)) }),
			reconciletest.Delete(settings),
			reconciletest.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool-0"}}),
			reconciletest.Delete(owner),
		},
	})
}
