//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// anywhereSet is a set of a ClusterRole, and of ConfigMaps in another namespace that come after it, one for each shard.
func anywhereSet() *ChildSet[*Shop] {
	role := Build(func(owner *Shop) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shop-" + owner.Name}}
	}, Anywhere())
	shards := BuildEach(func(owner *Shop) (all []*corev1.ConfigMap, err error) {
		for i := range owner.Spec.Shards {
			all = append(all, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint(owner.Name, "-", i)},
				Data:       map[string]string{"shards": fmt.Sprint(owner.Spec.Shards)},
			})
		}
		return all, nil
	}, Anywhere()).After(role)
	return Ensure(shards, role)
}

func otherNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
}

func shard(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint("web-", i)}}
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
			removeByForce(owner), // its marked objects are left until the next owner of its name comes
			reconciletest.Create(owner),
			annotated(owner),
			reconciletest.Delete(owner),
		},
		Finally: func(env *reconciletest.Env) error {
			for _, obj := range []client.Object{shard(0), shard(1), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shop-web"}}} {
				if err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					return errors.Join(fmt.Errorf("%T %s is left", obj, obj.GetName()), err)
				}
			}
			return nil
		},
	}))
}

// A release with another name of the step takes an owner over. The earlier release runs beside it, and sees only the
// owners without the label of the new release, however late.
func TestRenamedStepSurvivesEveryFault(t *testing.T) {
	owner := newShop(withShards(2))
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Objects: []client.Object{otherNamespace()},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager(reconcile.CacheOptions())
			former := reconcile.For(mgr, reconcile.Named("data", anywhereSet())).WithFilter(func(s *Shop) bool { return s.Labels["release"] == "" })
			present := reconcile.For(mgr, reconcile.Named("storage", anywhereSet(), reconcile.FormerNames("data"))).WithFilter(func(s *Shop) bool { return s.Labels["release"] != "" })
			options := controller.Options{SkipNameValidation: new(true)}
			return errors.Join(former.WithOptions(options).Complete(), present.WithOptions(options).Complete())
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			annotated(owner),
			reconciletest.Change(owner, func(s *Shop) {
				s.Labels = map[string]string{"release": "present"}
				s.Spec.Shards = 1
			}),
			reconciletest.Delete(owner),
		},
		Finally: func(env *reconciletest.Env) error {
			for _, obj := range []client.Object{newShop(), shard(0), shard(1), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shop-web"}}} {
				if err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					return errors.Join(fmt.Errorf("%T %s is left", obj, obj.GetName()), err)
				}
			}
			return nil
		},
	}))
}

// removeByForce deletes an object together with its finalizers.
func removeByForce(obj client.Object) reconciletest.Action {
	return reconciletest.Do("remove the owner by force", func(ctx context.Context, c client.Client) error {
		found := obj.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
			return client.IgnoreNotFound(err)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Patch(ctx, found, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(c.Delete(ctx, found))
	})
}

// annotated changes an owner in a way that does not count. Between its creation and its deletion, it makes sure that a concurrent
// action of a fault does not delete the owner before it has a finalizer.
func annotated(owner *Shop) reconciletest.Action {
	return reconciletest.Change(owner, func(s *Shop) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.com/note", "changed") })
}

// deleteWith deletes an object with a propagation policy.
func deleteWith(obj client.Object, policy metav1.DeletionPropagation) reconciletest.Action {
	return reconciletest.Do("delete the owner with propagation "+string(policy), func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, obj.DeepCopyObject().(client.Object), client.PropagationPolicy(policy)))
	})
}

// retainSet is a set of a ConfigMap that stays if the shop keeps its data.
func retainSet() *ChildSet[*Shop] {
	return Ensure(Build(func(owner *Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-data"}, Data: map[string]string{"made": "by " + owner.Name}}
	}, Adopt()).Retain(func(owner *Shop) bool { return owner.Spec.KeepData }))
}

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
			actions: []reconciletest.Action{reconciletest.Create(owner), annotated(owner), deleteWith(owner, metav1.DeletePropagationForeground)},
		},
		"Orphan": {
			reason:  "It stays anyway, and keeps its marks.",
			actions: []reconciletest.Action{reconciletest.Create(owner), annotated(owner), deleteWith(owner, metav1.DeletePropagationOrphan)},
		},
		"ByForce": {
			reason:  "It stays without the finalizer too.",
			actions: []reconciletest.Action{reconciletest.Create(owner), annotated(owner), removeByForce(owner), reconciletest.Create(owner)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			reconciletest.Explore(t, withShops(reconciletest.Scenario{
				Start:   startSet(retainSet),
				Actions: tc.actions,
				Ignore: func(obj *unstructured.Unstructured) { // its mark names the owner that had it last, which depends on when they were deleted
					if obj.GetKind() == "ConfigMap" {
						unstructured.RemoveNestedField(obj.Object, "metadata", "labels", record.OwnerUID)
						unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", record.Owner)
					}
				},
				Finally: func(env *reconciletest.Env) error {
					return env.Get(context.Background(), client.ObjectKeyFromObject(data), data.DeepCopy())
				},
			}))
		})
	}
}
