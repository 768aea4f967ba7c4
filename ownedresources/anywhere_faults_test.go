//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// anywhereSet returns a set of children in other namespaces and at cluster scope: a ClusterRole, and one ConfigMap for
// each shard, created after the ClusterRole.
func anywhereSet() *ChildSet[*Shop] {
	role := Build(func(owner *Shop) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shop-" + owner.Name}}
	}).Anywhere()
	shards := BuildEach(func(owner *Shop) (all []*corev1.ConfigMap, err error) {
		for i := range owner.Spec.Shards {
			all = append(all, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint(owner.Name, "-", i)},
				Data:       map[string]string{"shards": fmt.Sprint(owner.Spec.Shards)},
			})
		}
		return all, nil
	}).Anywhere().After(role)
	return Ensure(shards, role)
}

func otherNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
}

func shard(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint("web-", i)}}
}

// nothingLeft returns an error if the shop or one of its children still exists.
func nothingLeft(env *reconciletest.Env) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shop-web"}}
	for _, obj := range []client.Object{newShop(), role, shard(0), shard(1)} {
		if err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("%T %s is left", obj, obj.GetName()), err)
		}
	}
	return nil
}

func TestAnywhereSurvivesEveryFault(t *testing.T) {
	owner := newShop(withShards(2))
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Objects: []client.Object{otherNamespace()},
		Start:   startSet(anywhereSet),
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			changeShop(withShards(1)),
			reconciletest.Change(shard(0), func(m *corev1.ConfigMap) { delete(m.Labels, record.OwnerUID) }),
			reconciletest.Delete(shard(0)),
			removeShopByForce(), // its children stay until another owner of the same name is created
			reconciletest.Create(owner),
			annotateShop(),
			reconciletest.Delete(owner),
		},
		Finally: nothingLeft,
	}))
}

// A new release of an operator gives a step another name, and takes an owner over. The earlier release runs beside
// it. The earlier release sees only the owners without the label of the new release, and may see a new label late.
func TestRenamedStepSurvivesEveryFault(t *testing.T) {
	owner := newShop(withShards(2))
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Objects: []client.Object{otherNamespace()},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager(reconcile.CacheOptions())
			former := reconcile.For(mgr, reconcile.Named("data", anywhereSet())).WithFilter(func(s *Shop) bool { return s.Labels["release"] == "" })
			present := reconcile.For(mgr, reconcile.Named("storage", anywhereSet()).FormerNames("data")).WithFilter(func(s *Shop) bool { return s.Labels["release"] != "" })
			options := controller.Options{SkipNameValidation: new(true)}
			return errors.Join(former.WithOptions(options).Complete(), present.WithOptions(options).Complete())
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			annotateShop(),
			reconciletest.Change(owner, func(s *Shop) {
				s.Labels = map[string]string{"release": "present"}
				s.Spec.Shards = 1
			}),
			reconciletest.Delete(owner),
		},
		Finally: nothingLeft,
	}))
}
