package ownedresources

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// anywhere returns a set of a ClusterRole and, created after it, of as many ConfigMaps in the other namespace as the owner
// asks for shards.
func (env *serverEnv) anywhere(options ...childOption) *ChildSet[*Shop] {
	options = append(options, withAnywhere())
	role := with(Build(func(*Shop) *rbacv1.ClusterRole { return env.role() }), options...)
	shards := with(BuildEach(func(owner *Shop) (all []*corev1.ConfigMap, err error) {
		for i := range int(owner.Spec.Shards) {
			all = append(all, env.shard(i))
		}
		return all, nil
	}), options...).After(role)
	return Ensure(shards, role)
}

func (env *serverEnv) role() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace}}
}

func (env *serverEnv) shard(i int) *corev1.ConfigMap {
	return namedConfigMap(env.elsewhere, fmt.Sprint("web-", i))
}

// isOf returns a function that reports whether an object has no owner reference, and names the owner by its label and
// its annotation instead.
func (env *serverEnv) isOf(owner types.UID) func(client.Object) bool {
	return func(obj client.Object) bool {
		return obj.GetLabels()[record.OwnerUID] == string(owner) && len(obj.GetOwnerReferences()) == 0 &&
			obj.GetAnnotations()[record.Owner] == fmt.Sprintf("Shop.example.com/%s/web/%s", env.Namespace, owner)
	}
}

func waitForMarks[T client.Object](t *testing.T, env *serverEnv, obj T, owner types.UID) {
	t.Helper()
	waitFor(t, env, obj, func(obj T) bool { return env.isOf(owner)(obj) })
}

func TestAnywhere(t *testing.T) {
	t.Run("LivesAndGoesWithTheOwner", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		role, shard, second := env.role(), env.shard(0), env.shard(1)
		waitForMarks(t, env, role, env.Owner.UID)
		waitForMarks(t, env, shard, env.Owner.UID)

		env.setShards(t, 2)
		waitFor(t, env, second, exists)
		env.setShards(t, 1)
		env.waitGone(t, second)

		change(t, env, shard, func(m *corev1.ConfigMap) { delete(m.Labels, record.OwnerUID) })
		waitForMarks(t, env, shard, env.Owner.UID)
		change(t, env, role, func(r *rbacv1.ClusterRole) { r.Labels[record.OwnerUID] = "of-somebody-else" })
		waitForMarks(t, env, role, env.Owner.UID)

		before := shard.UID
		require.NoError(t, env.Other.Delete(t.Context(), shard))
		waitFor(t, env, shard, func(m *corev1.ConfigMap) bool { return m.UID != before })

		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		env.waitGone(t, env.Owner, role, shard)
	})
	t.Run("OwnerDeletedWhileDown", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		_, stop := env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		waitForMarks(t, env, env.shard(0), env.Owner.UID)
		stop()
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		change(t, env, env.shard(0), func(m *corev1.ConfigMap) { m.Labels = nil }) // no operator runs that could repair it
		waitFor(t, env, env.Owner, func(shop *Shop) bool { return shop.DeletionTimestamp != nil })
		env.start(t, env.anywhere())
		env.waitGone(t, env.Owner, env.role(), env.shard(0))
	})
	t.Run("OwnerMadeAnewWhileDown", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		_, stop := env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		env.setShards(t, 2)
		shard, second := env.shard(0), env.shard(1)
		waitForMarks(t, env, second, env.Owner.UID)
		waitForMarks(t, env, shard, env.Owner.UID)
		stop()
		env.removeByForce(t)
		before := shard.UID
		env.Owner = env.newOwner()
		env.Create(t, env.Owner)
		env.start(t, env.anywhere())
		waitForMarks(t, env, shard, env.Owner.UID)
		require.NotEqual(t, before, shard.UID, "it is made anew, and not taken over")
		waitForMarks(t, env, env.role(), env.Owner.UID)
		env.waitGone(t, second)
	})
	t.Run("AdoptedByTheNextOwner", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		_, stop := env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		shard := env.shard(0)
		waitForMarks(t, env, shard, env.Owner.UID)
		stop()
		env.removeByForce(t)
		before := shard.UID
		env.Owner = env.newOwner()
		env.Create(t, env.Owner)
		env.start(t, env.anywhere(withAdopt()))
		waitForMarks(t, env, shard, env.Owner.UID)
		require.Equal(t, before, shard.UID)
	})
	t.Run("CopiesStay", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		shard := env.shard(0)
		waitForMarks(t, env, shard, env.Owner.UID)
		copyOf := func(namespace, name string) *corev1.ConfigMap {
			made := shard.DeepCopy()
			made.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: shard.Labels, Annotations: shard.Annotations}
			require.NoError(t, env.Other.Create(t.Context(), made, client.FieldOwner("backup")))
			return made
		}
		renamed, moved := copyOf(env.elsewhere, "copy"), copyOf(env.Namespace, shard.Name)
		forged := copyOf(env.elsewhere, "forged") // it looks like a child, but the operator has never written it
		change(t, env, forged, func(m *corev1.ConfigMap) { m.Annotations[record.Object] = "ConfigMap/" + env.elsewhere + "/forged" })
		env.setShards(t, 2) // children of the first name are pruned
		waitForMarks(t, env, env.shard(1), env.Owner.UID)
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		env.waitGone(t, env.Owner, env.role(), shard, env.shard(1))
		for _, copied := range []*corev1.ConfigMap{renamed, moved, forged} {
			require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(copied), copied))
			require.Nil(t, copied.DeletionTimestamp)
		}
	})
	t.Run("AnotherOwnersChild", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		set, _ := env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		waitForMarks(t, env, env.shard(0), env.Owner.UID)
		second := env.newOwner()
		second.Name = "second"
		env.Create(t, second)
		set.waitForError(t, func(err error) bool {
			owned, is := errors.AsType[*OwnershipError](err)
			return is && owned.Owner.Name == "web" && owned.OwnerNamespace == env.Namespace && owned.Owner.UID == env.Owner.UID
		})
		require.NoError(t, env.Other.Delete(t.Context(), second))
		env.waitGone(t, second)
		require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(env.shard(0)), env.shard(0)), "it belongs to the first")
		env.Create(t, func() *Shop {
			second.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: "second"}
			return second
		}())
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		waitFor(t, env, env.role(), func(r *rbacv1.ClusterRole) bool { return r.Labels[record.OwnerUID] == string(second.UID) })
	})
	t.Run("TerminatingNamespace", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		set, _ := env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		shard := env.shard(0)
		waitForMarks(t, env, shard, env.Owner.UID)
		before := shard.UID
		change(t, env, shard, func(m *corev1.ConfigMap) { m.Finalizers = []string{"example.com/hold"} })
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.elsewhere}}
		require.NoError(t, env.Other.Delete(t.Context(), namespace))
		set.waitForError(t, func(err error) bool {
			wait, waits := errors.AsType[*WaitingError](err)
			return waits && strings.Contains(wait.Error(), "is being deleted")
		})
		change(t, env, shard, func(m *corev1.ConfigMap) { m.Finalizers = nil })
		env.waitGone(t, namespace)
		require.NoError(t, env.Other.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.elsewhere}}))
		waitForMarks(t, env, shard, env.Owner.UID)
		require.NotEqual(t, before, shard.UID)
	})
	t.Run("NamespaceNotCovered", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		set, _ := env.start(t, env.anywhere(), env.Namespace)
		env.Create(t, env.Owner)
		set.waitForError(t, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "ConfigMap "+env.elsewhere+"/web-0 is in a namespace that the operator's cache does not cover")
		})
		waitForMarks(t, env, env.role(), env.Owner.UID) // the other children are written in any case
		require.True(t, apierrors.IsNotFound(env.Other.Get(t.Context(), client.ObjectKeyFromObject(env.shard(0)), env.shard(0))))
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		env.waitGone(t, env.Owner, env.role())
	})
	t.Run("AnotherInstallationsChildStays", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		env.start(t, env.anywhere(), env.Namespace, env.elsewhere)
		other := *env.Server // its cache covers the other namespace, but not the owner's namespace
		other.Namespace = env.elsewhere
		neighbour := &serverEnv{Server: &other, spec: env.spec}
		set, _ := neighbour.start(t, env.anywhere(), env.elsewhere)
		env.Create(t, env.Owner)
		waitForMarks(t, env, env.shard(0), env.Owner.UID)
		theirs := neighbour.newOwner()
		neighbour.Create(t, theirs)
		set.waitForError(t, func(err error) bool { _, is := errors.AsType[*OwnershipError](err); return is })
		require.NoError(t, env.Other.Delete(t.Context(), theirs))
		env.waitGone(t, theirs)
		waitForMarks(t, env, env.shard(0), env.Owner.UID)
	})
	t.Run("OrphanPropagation", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Shards: 1})
		env.start(t, env.anywhere())
		env.Create(t, env.Owner)
		shard := env.shard(0)
		waitForMarks(t, env, shard, env.Owner.UID)
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		env.waitGone(t, env.Owner)
		for _, obj := range []client.Object{shard, env.role()} {
			require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			require.Nil(t, obj.GetDeletionTimestamp())
			require.NotContains(t, obj.GetLabels(), record.OwnerUID)
			require.NotContains(t, obj.GetAnnotations(), record.Owner)
		}
		require.NoError(t, env.Other.Delete(t.Context(), env.role()))
	})
}
