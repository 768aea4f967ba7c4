package ownedresources

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
	"github.com/opblocks/opblocks/reconcile"
)

// Other writers change objects, and the cache is late or sends no events. In each case, the next reconcile that reads
// these objects from the cache restores the desired state.
func TestSettledMissesNothing(t *testing.T) {
	tests := map[string]struct {
		reason string
		attack func(t *testing.T, env *memoryEnv)
		check  func(t *testing.T, env *memoryEnv)
	}{
		"ChildChanged": {
			reason: "The event of the change is hidden by a filter.",
			attack: func(t *testing.T, env *memoryEnv) {
				child := env.child(t, "built")
				child.Data["content"] = "by hand"
				require.NoError(t, env.server.Other.Update(t.Context(), child))
			},
		},
		"ChildDeleted": {
			reason: "So is that of a deletion.",
			attack: func(t *testing.T, env *memoryEnv) {
				require.NoError(t, env.server.Other.Delete(t.Context(), env.child(t, "built")))
			},
		},
		"ChildReplaced": {
			reason: "Another object has the name and the content, and is not ours.",
			attack: func(t *testing.T, env *memoryEnv) {
				child := env.child(t, "built")
				require.NoError(t, env.server.Other.Delete(t.Context(), child))
				child.UID, child.ResourceVersion, child.Data["content"] = "", "", "by hand"
				require.NoError(t, env.server.Other.Create(t.Context(), child))
			},
		},
		"ReadyRemoved": {
			reason: "Somebody removes the condition from the status.",
			attack: func(t *testing.T, env *memoryEnv) {
				owner := env.owner(t)
				owner.Status.Conditions = nil
				require.NoError(t, env.server.Other.Status().Update(t.Context(), owner))
			},
		},
		"ReadyChanged": {
			reason: "Somebody changes it.",
			attack: func(t *testing.T, env *memoryEnv) {
				owner := env.owner(t)
				meta.SetStatusCondition(&owner.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ByHand"})
				require.NoError(t, env.server.Other.Status().Update(t.Context(), owner))
			},
		},
		"OwnerChanged": {
			reason: "A label does not change the generation.",
			attack: func(t *testing.T, env *memoryEnv) {
				owner := env.owner(t)
				owner.Spec.Content = "two"
				require.NoError(t, env.server.Other.Update(t.Context(), owner))
			},
			check: func(t *testing.T, env *memoryEnv) { require.Equal(t, "two", env.child(t, "built").Data["content"]) },
		},
		"OwnerRecreated": {
			reason: "The owner is another one, and its children are gone or still those of the first.",
			attack: func(t *testing.T, env *memoryEnv) {
				require.NoError(t, env.server.Other.Delete(t.Context(), env.owner(t)))
				require.NoError(t, env.server.Other.Create(t.Context(), newShop(func(s *ShopSpec) { s.Content = "two" })))
				env.showSilently(t)
				env.pass(t)
				for _, name := range []string{"built", "other"} {
					if child := env.child(t, name); !metav1.IsControlledBy(child, env.owner(t)) { // as the garbage collector does
						require.NoError(t, env.server.Other.Delete(t.Context(), child))
					}
				}
			},
			check: func(t *testing.T, env *memoryEnv) { require.Equal(t, "two", env.child(t, "built").Data["content"]) },
		},
		"PauseEnds": {
			reason: "Nothing changes when the time comes: only the clock does.",
			attack: func(t *testing.T, env *memoryEnv) {
				owner := env.owner(t)
				owner.Annotations = map[string]string{reconcile.PausedAnnotation: env.clock.Now().Add(time.Hour).Format(time.RFC3339)}
				require.NoError(t, env.server.Other.Update(t.Context(), owner))
				for range 2 {
					env.showSilently(t)
					require.NotZero(t, env.pass(t), "the pass that ends the pause")
				}
				require.True(t, meta.IsStatusConditionTrue(env.owner(t).Status.Conditions, "Paused"))
				child := env.child(t, "built")
				child.Data["content"] = "while paused"
				require.NoError(t, env.server.Other.Update(t.Context(), child))
				env.clock.SetTime(env.clock.Now().Add(2 * time.Hour))
			},
			check: func(t *testing.T, env *memoryEnv) {
				require.Nil(t, meta.FindStatusCondition(env.owner(t).Status.Conditions, "Paused"))
			},
		},
		"ChildOfALateRequest": {
			reason: "A request for a child that is not desired any more takes effect after the others were pruned.",
			attack: func(t *testing.T, env *memoryEnv) {
				late := env.child(t, "built")
				late.Name, late.UID, late.ResourceVersion = "late", "", ""
				require.NoError(t, env.server.Other.Create(t.Context(), late))
				env.show(t)
			},
			check: func(t *testing.T, env *memoryEnv) {
				err := env.server.Other.Get(t.Context(), types.NamespacedName{Namespace: shopName.Namespace, Name: "late"}, &configMap{})
				require.True(t, apierrors.IsNotFound(err), "it is pruned")
			},
		},
		"ChildOfALateAdoption": {
			reason: "A request that adopts an object which is not desired any more takes effect after the others were pruned.",
			attack: func(t *testing.T, env *memoryEnv) { becomeOurs(t, env, &configMap{}) },
			check:  wasPruned,
		},
		"ReferenceRestored": {
			reason: "Somebody puts the owner reference on again, which somebody had taken off before.",
			attack: func(t *testing.T, env *memoryEnv) {
				becomeOurs(t, env, &configMap{ObjectMeta: metav1.ObjectMeta{Annotations: env.child(t, "built").Annotations}})
			},
			check: wasPruned,
		},
		"SetRestored": {
			reason: "Somebody restores an annotation.",
			attack: func(t *testing.T, env *memoryEnv) {
				becomeOurs(t, env, &configMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: env.child(t, "built").OwnerReferences}})
			},
			check: wasPruned,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newMemoryEnv(t, Ensure(hold("built", contentOfShop), hold("other", func(*Shop) string { return "constant" })))
			env.converge(t)
			require.True(t, env.isSettled(t))
			want := env.child(t, "built").Data["content"]
			tc.attack(t, env)
			for range 4 {
				env.showSilently(t)
				env.pass(t)
			}
			require.True(t, meta.IsStatusConditionTrue(env.owner(t).Status.Conditions, "Ready"), tc.reason)
			if tc.check == nil {
				require.Equal(t, want, env.child(t, "built").Data["content"], tc.reason)
				require.True(t, metav1.IsControlledBy(env.child(t, "built"), env.owner(t)))
			} else {
				tc.check(t, env)
			}
			require.Empty(t, env.impure)
		})
	}
}

// If the set has nothing to do for an owner, it is skipped the next time. That holds only if the last reconcile used
// the version of the owner that the cache contains.
func TestSettledIsOfTheCachedOwner(t *testing.T) {
	t.Run("OwnWriteNotShown", func(t *testing.T) {
		env := newMemoryEnv(t, Ensure(hold("built", contentOfShop)))
		for range 4 {
			env.show(t)
			for key, shown := range env.cache.shown { // the cache has the children, and the owner without the status that we wrote
				if owner, ok := shown.(*Shop); ok && owner.ResourceVersion != "" {
					old := owner.DeepCopy()
					old.Status, old.ResourceVersion = testkinds.ShopStatus{}, "1"
					env.cache.shown[key] = old
				}
			}
			env.pass(t)
		}
		env.showSilently(t)
		require.False(t, env.isSettled(t), "those passes worked on our own write, which the cache did not show")
		env.pass(t)
		require.True(t, env.isSettled(t))
	})
	t.Run("StepBefore", func(t *testing.T) {
		runs := 0
		set := Ensure(hold("built", func(owner *Shop) string { runs++; return owner.Spec.Content }))
		env := newMemoryEnvOf(t, set, reconcile.Named("before", reconcile.Func(func(_ context.Context, _ client.Client, owner *Shop) error {
			owner.Spec.Content = "two"
			return nil
		})), reconcile.Named("children", set))
		env.converge(t)
		require.False(t, env.isSettled(t), "the set has not built from what the cache shows")
		runs = 0
		env.pass(t)
		require.Equal(t, 1, runs)
		require.Equal(t, "two", env.child(t, "built").Data["content"])
	})
	t.Run("SetBefore", func(t *testing.T) {
		other := Ensure(hold("other", contentOfShop))
		set := Ensure(hold("built", contentOfShop))
		env := newMemoryEnvOf(t, set, reconcile.Named("before", other), reconcile.Named("children", set))
		env.show(t)
		for range 4 { // the other set gets no events, so its own writes are forgotten after a time
			env.pass(t)
			env.show(t)
			for _, s := range []*ChildSet[*Shop]{set, other} {
				s.set.Applier.Writes.Forget(&configMap{}, types.NamespacedName{Namespace: shopName.Namespace, Name: "other"})
			}
		}
		env.pass(t)
		require.True(t, env.isSettled(t), "another set does not change the owner")
	})
	t.Run("OutsideOfAPass", func(t *testing.T) {
		set := Ensure(hold("built", contentOfShop))
		env := newMemoryEnv(t, set)
		for range 4 {
			env.show(t)
			require.NoError(t, set.Reconcile(t.Context(), env.cache, env.cachedOwner().DeepCopy()))
		}
		require.False(t, env.isSettled(t), "nobody can tell whether the object was changed in memory")
	})
}

// If a function panics, the owner is not settled, and later reconciles work as usual.
func TestSettledAfterAPanic(t *testing.T) {
	panics := false
	env := newMemoryEnv(t, Ensure(hold("built", func(owner *Shop) string {
		if panics {
			panic("on purpose")
		}
		return contentOfShop(owner)
	})))
	env.converge(t)
	panics = true
	env.updated(t, env.cachedOwner(), env.cachedOwner()) // a resync
	env.pass(t)
	require.False(t, env.isSettled(t))
	panics = false
	env.converge(t)
	require.True(t, env.isSettled(t))
}

// On a resync, the controller's watch enqueues the owner, and the set's handler forgets that it has nothing to do for this
// owner. The two run in goroutines of their own. If the reconcile runs before the handler, the set is skipped. So the handler
// enqueues the owner again.
func TestResyncEnqueuesASettledOwner(t *testing.T) {
	env := newMemoryEnv(t, Ensure(hold("built", contentOfShop)))
	env.converge(t)
	require.Zero(t, env.queue.Len(), "other events are noted by their versions")
	resync := func() { env.updated(t, env.cachedOwner(), env.cachedOwner()) }
	resync()
	require.Equal(t, 1, env.queue.Len())
	request, _ := env.queue.Get()
	require.Equal(t, shopName, request.NamespacedName)
	env.queue.Done(request)
	resync()
	require.Zero(t, env.queue.Len(), "no reconcile can have been left out")
}

// A watch that was interrupted may send one update event for an object that was deleted and created again.
func TestUpdateToAnotherUID(t *testing.T) {
	env := newMemoryEnv(t, Ensure(hold("built", contentOfShop)))
	env.converge(t)
	m := env.set
	owner := env.cachedOwner()
	another := owner.DeepCopy()
	another.UID = "another"
	require.NotEmpty(t, m.set.Owners.ByUID)
	env.updated(t, owner, another)
	require.Empty(t, m.set.Owners.ByUID, "the first owner is gone")

	env.converge(t)
	child := env.child(t, "built")
	require.NotEmpty(t, m.set.Applier.Children.ByUID)
	anotherChild := child.DeepCopy()
	anotherChild.UID = "another"
	env.updated(t, child, anotherChild)
	require.Empty(t, m.set.Applier.Children.ByUID, "the first child is gone")
}

// An API server that was restored from a backup reuses resource versions for other contents.
func TestSettledAfterVersionsWentBack(t *testing.T) {
	const issuedAgain = "the version is one that was known with another content"
	restore := func(t *testing.T, obj client.Object) (before, after client.Object) { // returns an object that a watch shows before and after the restore
		t.Helper()
		before, after = obj, obj.DeepCopyObject().(client.Object)
		after.SetResourceVersion("1")
		return before, after
	}
	t.Run("Owner", func(t *testing.T) {
		env := newMemoryEnv(t, Ensure(hold("built", contentOfShop)))
		env.converge(t)
		before, after := restore(t, env.cachedOwner())
		env.cache.shown[keyFor(after, shopName)] = after
		require.False(t, env.isSettled(t), "it is another version")
		env.cache.shown[keyFor(before, shopName)] = before
		require.True(t, env.isSettled(t))
		other := &Shop{ObjectMeta: metav1.ObjectMeta{Name: "other", ResourceVersion: "9"}}
		before, after = restore(t, other)
		env.updated(t, before, after)
		require.False(t, env.isSettled(t), issuedAgain)
		env.pass(t)
		require.True(t, env.isSettled(t))
	})
	t.Run("Child", func(t *testing.T) {
		env := newMemoryEnv(t, Ensure(hold("built", contentOfShop)))
		env.converge(t)
		drifted := env.child(t, "built")
		drifted.Data["content"] = "another"
		env.cache.shown[keyFor(drifted, client.ObjectKeyFromObject(drifted))] = drifted
		require.True(t, env.isSettled(t), "no operator could tell, and nothing has shown yet that versions are issued again")
		before, after := restore(t, env.child(t, "built"))
		env.updated(t, before, after)
		require.False(t, env.isSettled(t), issuedAgain)
		version := env.child(t, "built").ResourceVersion
		env.pass(t)
		require.NotEqual(t, version, env.child(t, "built").ResourceVersion, "it is compared, and so it is applied")
	})
	t.Run("Input", func(t *testing.T) {
		calls := 0
		env := newInputEnv(t, func(string, *Shop) (string, error) { calls++; return "", nil })
		env.converge(t)
		calls = 0
		env.pass(t)
		require.Equal(t, 1, calls, "by the check of purity alone")
		before, after := restore(t, env.child(t, "built"))
		env.updated(t, before, after)
		env.pass(t)
		require.Equal(t, 2, calls, "it is read again")
	})
}

// A filter may keep the object that it gets: no later reconcile reads another object into it.
func TestFilterKeepsAnObject(t *testing.T) {
	env := newMemoryEnv(t, Ensure(hold("built", contentOfShop)))
	var kept []*Shop
	env.reconciler.WithFilter(func(b *Shop) bool { kept = append(kept, b); return true })
	env.converge(t)
	for _, b := range kept {
		require.Equal(t, shopName.Name, b.Name)
	}
}

// In a reconcile that would skip the set, the functions of children are called to check that they are pure. An impure
// function is reported, whatever it depends on.
func TestImpureBuilders(t *testing.T) {
	global, calls := "", 0
	all := map[string]string{}
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m n o p q r s t u v w x y z") {
		all[name] = name
	}
	tests := map[string]struct {
		build func(*Shop) string
		then  func()
	}{
		"Global":   {func(*Shop) string { return global }, func() { global = "another" }},
		"Time":     {func(*Shop) string { return time.Now().String() }, nil},
		"Random":   {func(*Shop) string { return string(newUIDForTest(&calls)) }, nil},
		"MapOrder": {func(*Shop) string { return strings.Join(slices.Collect(maps.Keys(all)), ",") }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			last, fixed := "", true // the function is pure until the set has nothing to do
			env := newMemoryEnv(t, Ensure(hold("other", contentOfShop), hold("built", func(owner *Shop) string {
				if !fixed {
					return tc.build(owner)
				}
				if last == "" {
					last = tc.build(owner)
				}
				return last
			})))
			env.converge(t)
			fixed = false
			if tc.then != nil {
				tc.then()
			}
			for range 3 { // two calls may see the map in the same order
				env.pass(t)
			}
			require.NotEmpty(t, env.impure)
			require.ErrorContains(t, env.impure[0], "ConfigMap default/built: it is built in another way, although neither the owner, nor what an input reads, nor a child has changed")
		})
	}
}

func newUIDForTest(calls *int) types.UID {
	*calls++
	return types.UID(strings.Repeat("x", *calls))
}

// A set with the option IfServed is skipped if it has nothing to do and the same kinds are served as before.
func TestSettledIfServed(t *testing.T) {
	builds := 0
	env := newMemoryEnv(t, Ensure(Build(func(*Shop) *configMap {
		builds++
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: "built"}}
	}).IfServed("Served")))
	expect := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		env.converge(t)
		require.True(t, env.isSettled(t))
		builds = 0
		_, err := env.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: shopName})
		require.NoError(t, err)
		require.Zero(t, builds, "the set is left out")
		condition := meta.FindStatusCondition(env.owner(t).Status.Conditions, "Served")
		require.NotNil(t, condition)
		require.Equal(t, [2]string{string(status), reason}, [2]string{string(condition.Status), condition.Reason})
	}
	expect(metav1.ConditionTrue, set.ReasonKindServed)
	env.cache.unserved = "ConfigMap"
	require.False(t, env.isSettled(t), "the kind is not served any more")
	expect(metav1.ConditionFalse, set.ReasonKindNotServed)
	env.cache.unserved = ""
	require.False(t, env.isSettled(t), "the kind is served again")
	expect(metav1.ConditionTrue, set.ReasonKindServed)
}

// A set with the option ExpandVolumes is skipped if it has nothing to do and no volume has to be enlarged.
func TestSettledExpandVolumes(t *testing.T) {
	env := newMemoryEnv(t, Ensure(Build(func(owner *Shop) *appsv1.StatefulSet {
		labels := map[string]string{"app": owner.Name}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "built"}, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "server", Image: "server:1"}},
			}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		}}
		claim := &set.Spec.VolumeClaimTemplates[0].Spec
		claim.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		if owner.Spec.Storage != nil {
			claim.Resources.Requests[corev1.ResourceStorage] = *owner.Spec.Storage
		}
		return set
	}).ExpandVolumes()))
	live := func() *appsv1.StatefulSet {
		t.Helper()
		set := &appsv1.StatefulSet{}
		require.NoError(t, env.server.Other.Get(t.Context(), types.NamespacedName{Namespace: shopName.Namespace, Name: "built"}, set))
		return set
	}
	env.show(t)
	env.pass(t)
	set := live()
	set.Status.ObservedGeneration = set.Generation
	require.NoError(t, env.server.Other.Status().Update(t.Context(), set))
	env.converge(t)
	require.True(t, env.isSettled(t))
	owner := env.owner(t)
	owner.Spec.Storage = new(resource.MustParse("2Gi"))
	require.NoError(t, env.server.Other.Update(t.Context(), owner))
	env.showSilently(t)
	require.False(t, env.isSettled(t), "the volume has to grow")
}

// becomeOurs creates an object without an owner. After a reconcile it adds the owner reference and the annotations of
// a child.
func becomeOurs(t *testing.T, env *memoryEnv, before *configMap) {
	t.Helper()
	before.Namespace, before.Name = shopName.Namespace, "late"
	require.NoError(t, env.server.Other.Create(t.Context(), before))
	env.converge(t)
	require.True(t, env.isSettled(t))
	late, ours := env.child(t, "late"), env.child(t, "built")
	late.OwnerReferences, late.Annotations = ours.OwnerReferences, ours.Annotations
	require.NoError(t, env.server.Other.Update(t.Context(), late))
	env.show(t)
}

func wasPruned(t *testing.T, env *memoryEnv) {
	t.Helper()
	err := env.server.Other.Get(t.Context(), types.NamespacedName{Namespace: shopName.Namespace, Name: "late"}, &configMap{})
	require.True(t, apierrors.IsNotFound(err), "it is pruned")
}
