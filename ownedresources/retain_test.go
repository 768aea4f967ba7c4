package ownedresources

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// retaining returns a set of a PersistentVolumeClaim, which is kept while KeepData is true, and of a ConfigMap, which
// is never kept.
func (env *serverEnv) retaining(options ...childOption) *ChildSet[*Shop] {
	options = append(options, withRetain(func(owner *Shop) bool { return owner.Spec.KeepData }), withReadyWhen("Bound"))
	return Ensure(
		with(Build(func(owner *Shop) *corev1.PersistentVolumeClaim { return env.claim() }), options...),
		Build(func(owner *Shop) *corev1.ConfigMap { return namedConfigMap(env.Namespace, "sentinel") }))
}

// retained returns an object with the name of the claim, and without its content.
func (env *serverEnv) retained() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "data"}}
}

func (env *serverEnv) claim() *corev1.PersistentVolumeClaim {
	made := env.retained()
	made.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	return made
}

func isRetainedFor(owner types.UID) func(*corev1.PersistentVolumeClaim) bool {
	return func(obj *corev1.PersistentVolumeClaim) bool {
		return obj.DeletionTimestamp == nil && len(obj.OwnerReferences) == 0 &&
			obj.Labels[record.OwnerUID] == string(owner) && obj.Annotations[record.Retained] == "true"
	}
}

// isOwned returns a function that reports whether the claim has the owner reference, and none of the labels and
// annotations that replace it.
func isOwned(owner types.UID) func(*corev1.PersistentVolumeClaim) bool {
	return func(obj *corev1.PersistentVolumeClaim) bool {
		return metav1.IsControlledBy(obj, &metav1.ObjectMeta{UID: owner}) && obj.Labels[record.OwnerUID] == "" &&
			obj.Annotations[record.Owner] == "" && obj.Annotations[record.Retained] == ""
	}
}

// waitForCollector waits until the garbage collector has deleted or orphaned the dependents of the deleted owner.
func (env *serverEnv) waitForCollector(t *testing.T, policy metav1.DeletionPropagation) {
	t.Helper()
	env.waitGone(t, env.Owner)
	sentinel := namedConfigMap(env.Namespace, "sentinel")
	if policy == metav1.DeletePropagationOrphan {
		waitFor(t, env, sentinel, func(m *corev1.ConfigMap) bool { return len(m.OwnerReferences) == 0 })
		return
	}
	env.waitGone(t, sentinel)
}

func TestRetain(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run("Deletion"+string(policy), func(t *testing.T) {
			env := newClusterEnv(t, ShopSpec{KeepData: true})
			set, stop := env.start(t, env.retaining())
			env.Create(t, env.Owner)
			data := env.retained()
			waitFor(t, env, data, isRetainedFor(env.Owner.UID))
			waitFor(t, env, namedConfigMap(env.Namespace, "sentinel"), func(m *corev1.ConfigMap) bool { return len(m.OwnerReferences) == 1 })
			require.NoError(t, env.Other.Delete(t.Context(), env.Owner, client.PropagationPolicy(policy)))
			env.waitForCollector(t, policy)
			before, former := data.UID, env.Owner.UID
			waitFor(t, env, data, isRetainedFor(former))
			require.Equal(t, before, data.UID)

			env.Owner = env.newOwner()
			env.Create(t, env.Owner)
			set.waitForError(t, func(err error) bool {
				owned, is := errors.AsType[*OwnershipError](err)
				return is && owned.Retained && owned.Owner.UID == former
			})
			waitFor(t, env, data, isRetainedFor(former))
			stop()
			option := withAdoptRetained
			if policy == metav1.DeletePropagationForeground {
				option = withAdopt
			}
			env.start(t, env.retaining(option()))
			waitFor(t, env, data, isRetainedFor(env.Owner.UID))
			require.Equal(t, before, data.UID)
		})
	}
	t.Run("TurnsFalseAndTrue", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{KeepData: true})
		env.start(t, env.retaining())
		env.Create(t, env.Owner)
		data := env.retained()
		waitFor(t, env, data, isRetainedFor(env.Owner.UID))
		before := data.UID
		for range 2 {
			env.setSpec(t, func(s *ShopSpec) { s.KeepData = false })
			waitFor(t, env, data, isOwned(env.Owner.UID))
			env.setSpec(t, func(s *ShopSpec) { s.KeepData = true })
			waitFor(t, env, data, isRetainedFor(env.Owner.UID))
		}
		require.Equal(t, before, data.UID)
		env.setSpec(t, func(s *ShopSpec) { s.KeepData = false })
		waitFor(t, env, data, isOwned(env.Owner.UID))
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		env.waitGone(t, data)
	})
	t.Run("ChangedRightBeforeTheDeletion", func(t *testing.T) {
		for name, tc := range map[string]struct {
			reason        string
			before, after bool // KeepData
		}{
			"TurnsTrue":  {reason: "The finalizer takes the reference off before the garbage collector follows it.", before: false, after: true},
			"TurnsFalse": {reason: "The finalizer deletes what has no reference yet.", before: true, after: false},
		} {
			t.Run(name, func(t *testing.T) {
				env := newClusterEnv(t, ShopSpec{KeepData: true})
				_, stop := env.start(t, env.retaining())
				env.Create(t, env.Owner)
				env.setSpec(t, func(s *ShopSpec) { s.KeepData = tc.before })
				data := env.retained()
				if tc.before {
					waitFor(t, env, data, isRetainedFor(env.Owner.UID))
				} else {
					waitFor(t, env, data, isOwned(env.Owner.UID))
				}
				stop()
				env.setSpec(t, func(s *ShopSpec) { s.KeepData = tc.after })
				require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
				env.start(t, env.retaining())
				env.waitForCollector(t, metav1.DeletePropagationBackground)
				if !tc.after {
					env.waitGone(t, data)
					return
				}
				waitFor(t, env, data, isRetainedFor(env.Owner.UID))
				t.Log(tc.reason)
			})
		}
	})
	t.Run("FallsOut", func(t *testing.T) {
		env := newClusterEnv(t, ShopSpec{Volumes: []string{"data"}})
		list := func() *ChildSet[*Shop] {
			return Ensure(with(BuildEach(func(owner *Shop) (all []*corev1.PersistentVolumeClaim, err error) {
				for range owner.Spec.Volumes {
					all = append(all, env.claim())
				}
				return all, nil
			}), withRetain(func(owner *Shop) bool { return owner.Spec.KeepData })))
		}
		env.start(t, list())
		env.Create(t, env.Owner)
		data := env.retained()
		waitFor(t, env, data, isOwned(env.Owner.UID))
		env.setSpec(t, func(s *ShopSpec) { s.Volumes, s.KeepData = nil, true }) // at once
		waitFor(t, env, data, isRetainedFor(env.Owner.UID))
		env.setSpec(t, func(s *ShopSpec) { s.KeepData = false })
		env.waitGone(t, data)
	})
}

// alwaysData returns the ConfigMap of a child that is always retained.
func alwaysData(*Shop) *corev1.ConfigMap { return namedConfigMap("", "always") }

// listedData returns one ConfigMap for each volume of the owner.
func listedData(owner *Shop) (all []*corev1.ConfigMap, err error) {
	for _, name := range owner.Spec.Volumes {
		all = append(all, namedConfigMap("", name))
	}
	return all, nil
}

// setVolumes changes KeepData and the volumes of the owner in one update.
func (env *serverEnv) setVolumes(t *testing.T, keep bool, names ...string) {
	t.Helper()
	env.setSpec(t, func(s *ShopSpec) { s.KeepData, s.Volumes = keep, names })
}

// Two children of one kind have the option Retain: a single object and a list. Only the result of the list's function changes.
// It decides about an object that is removed from the list.
func TestRetainIsPerChild(t *testing.T) {
	always := withRetain(func(*Shop) bool { return true })
	listed := withRetain(func(owner *Shop) bool { return owner.Spec.KeepData })
	both := func() *ChildSet[*Shop] {
		return Ensure(with(Build(alwaysData), always), with(BuildEach(listedData), listed))
	}
	reordered := func() *ChildSet[*Shop] {
		return Ensure(with(BuildEach(listedData), listed), with(Build(alwaysData), always))
	}
	isRetained := func(m *corev1.ConfigMap) bool {
		return m.Annotations[record.Retained] == "true" && len(m.OwnerReferences) == 0
	}
	begin := func(t *testing.T) (env *serverEnv, stop func()) {
		env = newClusterEnv(t, ShopSpec{Volumes: []string{"one", "two"}, KeepData: true})
		_, stop = env.start(t, both())
		env.Create(t, env.Owner)
		for _, name := range []string{"one", "two", "always"} {
			waitFor(t, env, namedConfigMap(env.Namespace, name), isRetained)
		}
		return env, stop
	}
	requireKept := func(t *testing.T, env *serverEnv, names ...string) {
		for _, name := range names {
			live := namedConfigMap(env.Namespace, name)
			require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(live), live))
			require.True(t, isRetained(live))
			require.Nil(t, live.DeletionTimestamp)
		}
	}
	t.Run("TurnsFalse", func(t *testing.T) {
		env, _ := begin(t)
		env.setVolumes(t, true, "one", "three")
		waitFor(t, env, namedConfigMap(env.Namespace, "three"), isRetained)
		requireKept(t, env, "one", "two", "always")
		env.setVolumes(t, false, "one", "three")
		env.waitGone(t, namedConfigMap(env.Namespace, "two"))
		requireKept(t, env, "always")
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		env.waitGone(t, env.Owner, namedConfigMap(env.Namespace, "one"), namedConfigMap(env.Namespace, "three"))
		requireKept(t, env, "always")
	})
	t.Run("TurnsFalseWhileTheOperatorIsDown", func(t *testing.T) {
		env, stop := begin(t)
		stop()
		env.setVolumes(t, false, "one")
		env.start(t, both())
		env.waitGone(t, namedConfigMap(env.Namespace, "two"))
		requireKept(t, env, "always")
	})
	t.Run("FallsOutAsItTurnsTrue", func(t *testing.T) {
		env, stop := begin(t)
		env.setVolumes(t, false, "one", "two")
		isReferenced := func(m *corev1.ConfigMap) bool { return len(m.OwnerReferences) == 1 }
		waitFor(t, env, namedConfigMap(env.Namespace, "one"), isReferenced)
		waitFor(t, env, namedConfigMap(env.Namespace, "two"), isReferenced)
		stop()
		env.setVolumes(t, true, "one")
		env.start(t, both())
		waitFor(t, env, namedConfigMap(env.Namespace, "two"), isRetained)
	})
	t.Run("OwnerIsDeleted", func(t *testing.T) {
		env, stop := begin(t)
		env.setVolumes(t, true, "one")
		stop()
		env.setVolumes(t, false, "one")
		require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
		env.start(t, both())
		env.waitGone(t, env.Owner, namedConfigMap(env.Namespace, "one"), namedConfigMap(env.Namespace, "two"))
		requireKept(t, env, "always")
	})
	t.Run("ReorderedByARelease", func(t *testing.T) {
		env, stop := begin(t)
		mark := namedConfigMap(env.Namespace, "one")
		waitFor(t, env, mark, isRetained)
		before := mark.Annotations[record.Builder]
		env.setVolumes(t, true, "one")
		stop()
		env.setVolumes(t, false, "one")
		env.start(t, reordered())
		waitFor(t, env, mark, func(m *corev1.ConfigMap) bool {
			return m.Annotations[record.Builder] != before && len(m.OwnerReferences) == 1
		})
		requireKept(t, env, "two", "always") // it is unknown which child built it
	})
}

func TestBuilders(t *testing.T) {
	retain := withRetain(func(*Shop) bool { return true })
	of := func(children ...AnyChild[*Shop]) []string {
		s := Ensure(children...)
		_, err := s.set.KindsIn(scheme.Scheme)
		require.NoError(t, err)
		return s.set.Known().Builders
	}
	single := func(options ...childOption) AnyChild[*Shop] { return with(Build(alwaysData), options...) }
	list := func(options ...childOption) AnyChild[*Shop] { return with(BuildEach(listedData), options...) }
	secret := with(Build(func(*Shop) *corev1.Secret { return nil }), retain)
	require.Equal(t, []string{"", ""}, of(single(retain), secret), "there is no other child of its kind")
	require.Equal(t, []string{"", ""}, of(single(), list()), "none is retained")
	both := of(single(retain), list(retain))
	require.NotEqual(t, both[0], both[1])
	require.Equal(t, both, of(single(retain), list(retain)), "also after a restart")
	require.Equal(t, []string{"", both[1]}, of(single(), list(retain)), "what is not retained is not asked for")
	require.Equal(t, []string{"", both[0], both[1]}, of(secret, single(retain), list(retain)), "other kinds do not count")
	for _, other := range [][]string{of(list(retain), single(retain)), of(single(retain), list(retain), list(retain)), of(list(retain), list(retain))} {
		for _, builder := range other {
			require.NotContains(t, both, builder)
		}
	}
}

// Another application has a claim with the name that the owner's claim would have.
func TestAdoptRetainedLeavesOthersAlone(t *testing.T) {
	env := newClusterEnv(t, ShopSpec{KeepData: true})
	theirs := env.claim()
	env.Create(t, theirs)
	before := theirs.DeepCopy()
	set, stop := env.start(t, env.retaining(withAdoptRetained()))
	env.Create(t, env.Owner)
	isRefused := func(err error) bool {
		_, is := errors.AsType[*OwnershipError](err)
		return is
	}
	set.waitForError(t, isRefused)
	env.setSpec(t, func(s *ShopSpec) { s.KeepData = false }) // if the claim were the owner's, it would be deleted with the owner
	require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
	env.waitForCollector(t, metav1.DeletePropagationBackground)
	stop()

	change(t, env, theirs, func(c *corev1.PersistentVolumeClaim) { // like the claim that an owner of another namespace has left
		former := &owned.Owner{Namespace: env.elsewhere, Set: "children", Reference: metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Shop", Name: "web", UID: "former"}}
		c.Annotations = former.MarkFor(owned.ByRetention).Annotations(record.NameOf(schema.GroupKind{Kind: "PersistentVolumeClaim"}, c))
		c.Annotations[record.Set] = "children"
		c.Annotations[record.Applied] = "v1:applied:0123456789abcdef0123456789abcdef"
	})
	env.Owner = env.newOwner()
	env.Owner.Spec.KeepData = false
	set, _ = env.start(t, env.retaining(withAdoptRetained()))
	env.Create(t, env.Owner)
	set.waitForError(t, isRefused)
	require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
	env.waitForCollector(t, metav1.DeletePropagationBackground)
	require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	require.Equal(t, before.UID, theirs.UID)
	require.Nil(t, theirs.DeletionTimestamp)
	m, _ := record.MarkOf(theirs, schema.GroupKind{Kind: "PersistentVolumeClaim"})
	require.Equal(t, types.UID("former"), m.UID, "its mark is as it was")
	require.Empty(t, theirs.OwnerReferences)
	require.Empty(t, theirs.Labels)
}
