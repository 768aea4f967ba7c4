//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package ownedresources_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// anywhereSet is a set of a ClusterRole and of ConfigMaps in another namespace, as many as minAvailable, which come after it.
func anywhereSet() *ownedresources.ChildSet[*pool] {
	role := ownedresources.Build(func(owner *pool) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pool-" + owner.Name}}
	}, ownedresources.Anywhere())
	shards := ownedresources.BuildEach(func(owner *pool) (all []*corev1.ConfigMap, err error) {
		for i := range owner.Spec.MinAvailable.IntValue() {
			all = append(all, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint(owner.Name, "-", i)},
				Data:       map[string]string{"shards": owner.Spec.MinAvailable.String()},
			})
		}
		return all, nil
	}, ownedresources.Anywhere()).After(role)
	return ownedresources.Ensure(shards, role)
}

func poolOf(shards int32) *pool {
	return &pool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(shards))},
	}
}

func otherNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
}

func shard(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint("pool-", i)}}
}

func TestAnywhereSurvivesEveryFault(t *testing.T) {
	owner := poolOf(2)
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme:  scheme.Scheme,
		Objects: []client.Object{otherNamespace()},
		Start: func(p *reconciletest.Process) error {
			return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", anywhereSet())).Complete()
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			reconciletest.Change(owner, func(p *pool) { p.Spec.MinAvailable = new(intstr.FromInt32(1)) }),
			reconciletest.Change(shard(0), func(m *corev1.ConfigMap) { delete(m.Labels, record.OwnerUID) }),
			reconciletest.Delete(shard(0)),
			removeByForce(owner), // its marked objects are left until the next owner of its name comes
			reconciletest.Create(owner),
			annotated(owner),
			reconciletest.Delete(owner),
		},
		Finally: func(env *reconciletest.Env) error {
			for _, obj := range []client.Object{shard(0), shard(1), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pool-pool"}}} {
				if err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					return errors.Join(fmt.Errorf("%T %s is left", obj, obj.GetName()), err)
				}
			}
			return nil
		},
	})
}

// A release with another name of the step takes an owner over. The earlier release runs beside it, and sees only the
// owners without the label of the new release, however late.
func TestRenamedStepSurvivesEveryFault(t *testing.T) {
	owner := poolOf(2)
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme:  scheme.Scheme,
		Objects: []client.Object{otherNamespace()},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager(reconcile.CacheOptions())
			former := reconcile.For(mgr, reconcile.Named("data", anywhereSet())).WithFilter(func(p *pool) bool { return p.Labels["release"] == "" })
			present := reconcile.For(mgr, reconcile.Named("storage", anywhereSet(), reconcile.FormerNames("data"))).WithFilter(func(p *pool) bool { return p.Labels["release"] != "" })
			options := controller.Options{SkipNameValidation: new(true)}
			return errors.Join(former.WithOptions(options).Complete(), present.WithOptions(options).Complete())
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(owner),
			annotated(owner),
			reconciletest.Change(owner, func(p *pool) {
				p.Labels = map[string]string{"release": "present"}
				p.Spec.MinAvailable = new(intstr.FromInt32(1))
			}),
			reconciletest.Delete(owner),
		},
		Finally: func(env *reconciletest.Env) error {
			for _, obj := range []client.Object{owner.DeepCopy(), shard(0), shard(1), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pool-pool"}}} {
				if err := env.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					return errors.Join(fmt.Errorf("%T %s is left", obj, obj.GetName()), err)
				}
			}
			return nil
		},
	})
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
func annotated(owner *pool) reconciletest.Action {
	return reconciletest.Change(owner, func(p *pool) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "example.com/note", "changed") })
}

// deleteWith deletes an object with a propagation policy.
func deleteWith(obj client.Object, policy metav1.DeletionPropagation) reconciletest.Action {
	return reconciletest.Do("delete the owner with propagation "+string(policy), func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, obj.DeepCopyObject().(client.Object), client.PropagationPolicy(policy)))
	})
}

// retainSet is a set of a claim that stays as long as minAvailable is not 0.
func retainSet(options ...ownedresources.ChildOption) *ownedresources.ChildSet[*pool] {
	return ownedresources.Ensure(ownedresources.Build(func(owner *pool) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-data"}, Data: map[string]string{"made": "by " + owner.Name}}
	}, options...).Retain(func(owner *pool) bool { return owner.Spec.MinAvailable.IntValue() != 0 }))
}

func TestRetainSurvivesEveryFault(t *testing.T) {
	owner := poolOf(1)
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool-data"}}
	keep := func(minAvailable int32) reconciletest.Action {
		return reconciletest.Change(owner, func(p *pool) { p.Spec.MinAvailable = new(intstr.FromInt32(minAvailable)) })
	}
	tests := map[string]struct {
		reason  string
		actions []reconciletest.Action
	}{
		"Background": {
			reason: "It stays, and the next owner adopts it. A change right before the deletion counts.",
			actions: []reconciletest.Action{
				reconciletest.Create(owner), keep(0), keep(1), reconciletest.Delete(owner),
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
			reconciletest.Explore(t, reconciletest.Scenario{
				Scheme: scheme.Scheme,
				Start: func(p *reconciletest.Process) error {
					return reconcile.For(p.Manager(reconcile.CacheOptions()), reconcile.Named("children", retainSet(ownedresources.Adopt()))).Complete()
				},
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
			})
		})
	}
}
