package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
	"github.com/opblocks/opblocks/internal/record"
)

// restoreEnv is a namespace with a backup of a child.
type restoreEnv struct {
	*serverEnv
	backup *corev1.ConfigMap // without UID, resource version and managed fields
}

// restorable returns a set of one ConfigMap.
func restorable(options ...childOption) *ChildSet[*Shop] {
	set := Ensure(with(Build(func(s *Shop) *corev1.ConfigMap { return NewConfigMap(s, map[string]string{"motto": "open"}) }), options...))
	set.SetName("settings")
	return set
}

// newRestoreEnv returns a namespace in which the child was written, saved and deleted, and in which the owner was deleted and
// created again.
func newRestoreEnv(t *testing.T) *restoreEnv {
	t.Helper()
	env := &restoreEnv{serverEnv: newEnvInMemory(t)}
	require.NoError(t, restorable().Reconcile(t.Context(), env.Client, env.Owner))
	env.backup = &corev1.ConfigMap{}
	env.Live(t, env.backup)
	require.NoError(t, env.Other.Delete(t.Context(), env.backup.DeepCopy()))
	env.backup.UID, env.backup.ResourceVersion, env.backup.ManagedFields = "", "", nil
	env.backup.Data["by-hand"] = "kept"
	require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
	env.Owner = env.newOwner()
	env.Create(t, env.Owner)
	return env
}

func withoutReference(c *corev1.ConfigMap) { c.OwnerReferences = nil }

// A backup tool restores objects with their annotations, and with other UIDs.
func TestAdoptRestored(t *testing.T) {
	tests := map[string]struct {
		reason   string
		restored func(c *corev1.ConfigMap)
		says     string // a part of the error; empty if the child is taken back
	}{
		"without owner references": {"Velero deletes them.", withoutReference, ""},
		"with the old reference":   {"Exports that are applied again have it.", func(*corev1.ConfigMap) {}, ""},
		"with a reference of others": {
			"It is not a controller.", func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "other"}}
			}, "",
		},
		"by the version before": {
			"It did not record the owner.", func(c *corev1.ConfigMap) { withoutReference(c); delete(c.Annotations, record.OwnerName) }, "",
		},
		"for an owner of another namespace": {
			"A tool can restore into another namespace.", func(c *corev1.ConfigMap) {
				withoutReference(c)
				c.Annotations[record.OwnerName] = "Shop.example.com/other/web"
			}, "is not controlled by anything, and was written for Shop.example.com/other/web",
		},
		"by another step": {
			"That step may take it back.", func(c *corev1.ConfigMap) { withoutReference(c); c.Annotations[record.Set] = "other" }, "is not controlled by anything: it is left alone",
		},
		"by nobody of this module": {
			"A record without a hash proves nothing.", func(c *corev1.ConfigMap) { withoutReference(c); delete(c.Annotations, record.Applied) },
			"is not controlled by anything: it is left alone",
		},
		"of another living owner": {
			"The records may be copied or forged.", func(c *corev1.ConfigMap) { c.OwnerReferences[0].Name, c.OwnerReferences[0].UID = "other", "other" }, "belongs to Shop other",
		},
		"that was retained elsewhere": {
			"It may be the only copy.", func(c *corev1.ConfigMap) {
				withoutReference(c)
				c.Annotations[record.Retained], c.Annotations[record.Set] = "true", "other"
			}, "was retained when a former owner was deleted",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newRestoreEnv(t)
			tc.restored(env.backup)
			env.Create(t, env.backup)
			err := restorable(withAdoptRestored()).Reconcile(t.Context(), env.Client, env.Owner)
			live := &corev1.ConfigMap{}
			env.Live(t, live)
			require.Equal(t, "kept", live.Data["by-hand"], tc.reason)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says, tc.reason)
				require.ErrorAs(t, err, new(*OwnershipError))
				require.NotContains(t, err.Error(), "delete it", "nobody is told to delete what may be the only copy")
				require.Equal(t, env.backup.ResourceVersion, live.ResourceVersion, "it is left alone")
				return
			}
			require.NoError(t, err, tc.reason)
			require.True(t, metav1.IsControlledBy(live, env.Owner), tc.reason)
			require.Equal(t, env.backup.UID, live.UID)
			require.Equal(t, record.NameOf(testkinds.ShopKind.GroupKind(), env.Owner).String(), live.Annotations[record.OwnerName])
			env.Requests.Sent()
			require.NoError(t, restorable(withAdoptRestored()).Reconcile(t.Context(), env.Client, env.Owner))
			require.NotContains(t, env.Requests.Sent(), "PATCH configmaps", "it is as desired")
		})
	}
}

// Without the option the error says what has happened, and what to do.
func TestRestoredWithoutTheOption(t *testing.T) {
	env := newRestoreEnv(t)
	withoutReference(env.backup)
	env.Create(t, env.backup)
	err := restorable().Reconcile(t.Context(), env.Client, env.Owner)
	require.ErrorContains(t, err, "was written for an owner of this name: it was restored from a backup, or somebody has removed its owner reference")
	require.ErrorContains(t, err, "AdoptRestored")
}

// An owner was deleted and created again. A reconcile still gets the deleted owner from the cache. It does not take back the
// restored child for that owner.
func TestRestoredForAnOwnerThatIsGone(t *testing.T) {
	env := newRestoreEnv(t)
	withoutReference(env.backup)
	env.Create(t, env.backup)
	gone := env.Owner.DeepCopy()
	require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
	env.Create(t, env.newOwner())
	require.Error(t, restorable(withAdoptRestored()).Reconcile(t.Context(), env.Client, gone), "the API server has another owner")
	live := &corev1.ConfigMap{}
	env.Live(t, live)
	require.Empty(t, live.OwnerReferences)
}

// A child that the garbage collector or somebody else is deleting is not taken back.
func TestRestoredThatIsBeingDeleted(t *testing.T) {
	env := newRestoreEnv(t)
	env.backup.Finalizers = []string{"example.com/slow"}
	env.Create(t, env.backup)
	require.NoError(t, env.Other.Delete(t.Context(), env.backup.DeepCopy()))
	requireWaits(t, restorable(withAdoptRestored()).Reconcile(t.Context(), env.Client, env.Owner), owned.ReasonTerminating)
	live := &corev1.ConfigMap{}
	env.Live(t, live)
	live.Finalizers = nil
	require.NoError(t, env.Other.Update(t.Context(), live))
}

// A child that names its owner by a label and annotations, without an owner reference, is taken back too, although
// they name the former owner.
func TestRestoredWithAMark(t *testing.T) {
	for name, set := range map[string]func(options ...childOption) *ChildSet[*Shop]{
		"anywhere": func(options ...childOption) *ChildSet[*Shop] {
			return restorable(append([]childOption{withAnywhere()}, options...)...)
		},
		"retained": func(options ...childOption) *ChildSet[*Shop] {
			return restorable(append(options, withRetain(func(*Shop) bool { return true }))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := &restoreEnv{serverEnv: newEnvInMemory(t)}
			controllerutil.AddFinalizer(env.Owner, set().FinalizerName())
			require.NoError(t, env.Other.Update(t.Context(), env.Owner))
			require.NoError(t, set().Reconcile(t.Context(), env.Client, env.Owner))
			before := &corev1.ConfigMap{}
			env.Live(t, before)
			env.Owner.Finalizers = nil
			require.NoError(t, env.Other.Update(t.Context(), env.Owner))
			require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
			env.Owner = env.newOwner()
			controllerutil.AddFinalizer(env.Owner, set().FinalizerName())
			env.Create(t, env.Owner)

			require.NoError(t, set(withAdoptRestored()).Reconcile(t.Context(), env.Client, env.Owner))
			live := &corev1.ConfigMap{}
			env.Live(t, live)
			require.Equal(t, before.UID, live.UID)
			require.Equal(t, string(env.Owner.UID), live.Labels[record.OwnerUID])
		})
	}
}

// The child has an owner reference to the former owner. If the present owner wants a child without a reference, the
// label and annotations of a child replace the reference.
func TestRestoredBecomesMarked(t *testing.T) {
	env := newRestoreEnv(t)
	set := restorable(withAdoptRestored(), withRetain(func(*Shop) bool { return true }))
	controllerutil.AddFinalizer(env.Owner, set.FinalizerName())
	require.NoError(t, env.Other.Update(t.Context(), env.Owner))
	env.Create(t, env.backup)
	require.NoError(t, set.Reconcile(t.Context(), env.Client, env.Owner))
	live := &corev1.ConfigMap{}
	env.Live(t, live)
	require.Empty(t, live.OwnerReferences)
	require.Equal(t, types.UID(live.Labels[record.OwnerUID]), env.Owner.UID)
	require.Equal(t, client.ObjectKeyFromObject(env.backup), client.ObjectKeyFromObject(live))
}

// An owner of the same name in another namespace is another owner. While it exists, its child is neither taken over nor
// deleted.
func TestChildOfAnOwnerOfTheSameNameElsewhere(t *testing.T) {
	for _, wrote := range []string{"this version", "the version before"} {
		for how, options := range map[string][]childOption{"Anywhere": {withAnywhere()}, "AdoptRestored": {withAnywhere(), withAdoptRestored()}} {
			t.Run(wrote+", "+how, func(t *testing.T) {
				env := newEnvInMemory(t)
				theirs := env.newOwner()
				theirs.Namespace = "elsewhere"
				env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs.Namespace}})
				env.Create(t, theirs)
				require.NoError(t, restorable().Reconcile(t.Context(), env.Client, theirs))
				before := namedConfigMap(theirs.Namespace, "web")
				require.True(t, env.Exists(t, before))
				if wrote == "the version before" {
					delete(before.Annotations, record.OwnerName)
					require.NoError(t, env.Other.Update(t.Context(), before))
				}
				set := Ensure(with(Build(func(s *Shop) *corev1.ConfigMap {
					made := NewConfigMap(s, map[string]string{"motto": "overwritten"})
					made.Namespace = theirs.Namespace
					return made
				}), options...))
				set.SetName("settings")
				clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
				set.set.Applier.Clock = clock
				controllerutil.AddFinalizer(env.Owner, set.FinalizerName())
				require.NoError(t, env.Other.Update(t.Context(), env.Owner))
				for range 3 {
					require.ErrorAs(t, set.Reconcile(t.Context(), env.Client, env.Owner), new(*OwnershipError))
					clock.SetTime(clock.Now().Add(2 * time.Minute)) // long enough for the set to delete an object whose owner is gone
				}
				after := namedConfigMap(theirs.Namespace, "web")
				require.True(t, env.Exists(t, after))
				require.Equal(t, before.ResourceVersion, after.ResourceVersion)
			})
		}
	}
}
