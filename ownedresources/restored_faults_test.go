//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/testkinds"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// A child is restored from a backup without its owner reference, and then its owner is restored. If a fault deletes the restored child, the
// value that another writer has set in it is lost. So this test does not compare that value: TestAdoptRestored checks it.
func TestRestoredSurvivesEveryFault(t *testing.T) {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	restore := reconciletest.Do("restore the shop and its child", func(ctx context.Context, c client.Client) error {
		owner := newShop()
		if err := c.Get(ctx, client.ObjectKeyFromObject(owner), &Shop{}); !apierrors.IsNotFound(err) {
			return err
		}
		saved := inBackup(owner)
		if err := c.Create(ctx, saved); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return c.Create(ctx, owner)
	})
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Start:   startSet(func() *ChildSet[*Shop] { return restorable(withAdoptRestored()) }),
		Actions: []reconciletest.Action{reconciletest.Create(newShop()), reconciletest.Delete(newShop()), restore},
		Ignore:  reconciletest.Ignore{Fields: map[string][]string{"ConfigMap": {"data.by-hand"}}},
		Finally: func(env *reconciletest.Env) error {
			live := child.DeepCopy()
			if err := env.Get(context.Background(), client.ObjectKeyFromObject(child), live); err != nil {
				return err
			}
			if metav1.GetControllerOf(live) == nil || live.Data["motto"] != "open" {
				return fmt.Errorf("the child is controlled by %v, and has %v", live.OwnerReferences, live.Data)
			}
			return nil
		},
	}))
}

// inBackup returns the child as a backup contains it, without owner references.
func inBackup(owner *Shop) *corev1.ConfigMap {
	saved := NewConfigMap(owner, map[string]string{"motto": "of before", "by-hand": "kept"})
	saved.Annotations = map[string]string{
		record.Set: "children", record.Applied: "v1:applied:0123456789abcdef0123456789abcdef",
		record.OwnerName: record.NameOf(testkinds.ShopKind.GroupKind(), owner).String(),
	}
	return saved
}
