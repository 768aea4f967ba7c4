package predicates_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestRealShardOfAChild shows that Shard is not enough if objects have children: the event of a child triggers a
// reconcile of the owner in the operators of all shards.
func TestRealShardOfAChild(t *testing.T) {
	cp := controlPlane(t)
	namespace := controlplane.Namespace(t, cp)
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	var reconciles [2]chan string
	for index := range reconciles {
		reconciles[index] = make(chan string, 100)
		shard, err := predicates.Shard(index, len(reconciles))
		require.NoError(t, err)
		mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{
			Metrics:    metricsserver.Options{BindAddress: "0"},
			Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		require.NoError(t, err)
		require.NoError(t, ctrl.NewControllerManagedBy(mgr).For(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(shard)).
			Owns(&corev1.ConfigMap{}).Complete(ctrlreconcile.Func(func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
			reconciles[index] <- r.Name
			return ctrl.Result{}, nil
		})))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		t.Cleanup(func() {
			stop()
			require.NoError(t, <-ended)
		})
	}

	owner := newBudget(namespace, "web")
	require.NoError(t, c.Create(t.Context(), owner))
	ours := predicates.ShardOf(owner, len(reconciles))
	expect := func(reason string, shard int) {
		t.Helper()
		select {
		case name := <-reconciles[shard]:
			require.Equal(t, owner.Name, name)
		case <-time.After(eventually):
			t.Fatal(reason)
		}
	}
	expect("the shard of the object reconciles it", ours)
	child := settingsOf(owner)
	require.NoError(t, ctrl.SetControllerReference(owner, child, c.Scheme()))
	require.NoError(t, c.Create(t.Context(), child))
	expect("the shard of the object reconciles it after an event of its child", ours)
	expect("surprise: so does the other shard", 1-ours)
}

func newBudget(namespace, name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))},
	}
}

// createUntil creates objects until the given number of them belongs to the shard. The API server chooses the UIDs,
// on which the shard depends. It returns the names of the objects of the shard.
func (s *shardedOperator) createUntil(t *testing.T, shard, count, more int) (created []string) {
	t.Helper()
	for len(created) < more {
		b := newBudget(s.namespace, fmt.Sprintf("budget-%03d", len(s.uids)))
		require.NoError(t, s.client.Create(t.Context(), b))
		s.uids[b.Name] = b.UID
		s.wanted[b.Name] = 1
		if predicates.ShardOf(b, count) == shard {
			created = append(created, b.Name)
		}
	}
	return created
}

// changeAll changes the spec of every object.
func (s *shardedOperator) changeAll(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		s.wanted[name]++
		patch := fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, s.wanted[name])
		require.NoError(t, s.client.Patch(t.Context(), newBudget(s.namespace, name), client.RawPatch(types.MergePatchType, patch)))
	}
}

// disturb changes the objects and children of a shard whose process is down. It also creates objects for this shard, and
// returns their names. It also deletes and creates objects of other shards.
func (s *shardedOperator) disturb(t *testing.T, dead int) (created []string) {
	t.Helper()
	mine := slices.DeleteFunc(slices.Sorted(maps.Keys(s.wanted)), func(name string) bool {
		return predicates.ShardOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: s.uids[name]}}, 3) != dead
	})
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(s.wanted)), func(name string) bool { return slices.Contains(mine, name) })
	for _, name := range []string{mine[0], others[0]} {
		require.NoError(t, s.client.Delete(t.Context(), newBudget(s.namespace, name)))
		delete(s.wanted, name)
	}
	require.NoError(t, s.client.Delete(t.Context(), settingsOf(newBudget(s.namespace, mine[1]))))
	for _, name := range []string{mine[2], others[1]} {
		edit := client.RawPatch(types.MergePatchType, []byte(`{"data":{"minAvailable":"edited by hand"}}`))
		require.NoError(t, s.client.Patch(t.Context(), settingsOf(newBudget(s.namespace, name)), edit))
	}
	return s.createUntil(t, dead, 3, 2)
}

func (s *shardedOperator) budget(t *testing.T, name string) *policyv1.PodDisruptionBudget {
	t.Helper()
	b := newBudget(s.namespace, name)
	require.NoError(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	return b
}

// settle waits until the operator has reconciled every object, except the objects for which down returns true.
func (s *shardedOperator) settle(t *testing.T, what string, down func(*policyv1.PodDisruptionBudget) bool) {
	t.Helper()
	var wrong []string
	settled := assert.Eventually(t, func() bool {
		wrong = s.differences(t, down)
		return len(wrong) == 0
	}, settleTimeout, 100*time.Millisecond, what)
	if !settled {
		t.Fatalf("%s: %v\n%s", what, wrong, s.logs())
	}
}

// differences returns which objects the operator has still to reconcile, and what is wrong with each.
func (s *shardedOperator) differences(t *testing.T, down func(*policyv1.PodDisruptionBudget) bool) (wrong []string) {
	var budgets policyv1.PodDisruptionBudgetList
	var children corev1.ConfigMapList
	for _, list := range []client.ObjectList{&budgets, &children} {
		if err := s.client.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			return []string{err.Error()}
		}
	}
	unclaimed := map[string]*corev1.ConfigMap{}
	for i := range children.Items {
		unclaimed[children.Items[i].Name] = &children.Items[i]
	}
	delete(unclaimed, "kube-root-ca.crt")
	for i := range budgets.Items {
		b := &budgets.Items[i]
		child := unclaimed[b.Name]
		delete(unclaimed, b.Name)
		switch {
		case down(b):
		case s.wanted[b.Name] == 0:
			wrong = append(wrong, b.Name+" has to go")
		case b.Spec.MinAvailable.IntValue() != s.wanted[b.Name] || b.Status.ObservedGeneration != b.Generation || !conditions.IsTrue(b.Status.Conditions, conditions.Ready):
			wrong = append(wrong, b.Name+" has an old status")
		case child == nil || !metav1.IsControlledBy(child, b) || child.Data["minAvailable"] != b.Spec.MinAvailable.String():
			wrong = append(wrong, b.Name+" has no child, or a wrong one")
		}
	}
	for name := range unclaimed {
		wrong = append(wrong, "the child "+name+" has to go")
	}
	return wrong
}
