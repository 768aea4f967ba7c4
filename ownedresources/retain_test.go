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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retaining returns a set of a claim that stays as long as minAvailable is not 0, and of a ConfigMap that does not stay.
func (env *operatorEnv) retaining(options ...ChildOption) *ChildSet[*budget] {
	options = append(options, Retain(func(owner *budget) bool { return owner.Spec.MinAvailable.IntValue() != 0 }), ReadyWhen("Bound"))
	return Ensure(
		Build(func(owner *budget) *corev1.PersistentVolumeClaim { return env.claim() }, options...),
		Build(func(owner *budget) *corev1.ConfigMap { return namedConfigMap(env.namespace, "sentinel") }))
}

// retained returns an empty claim of the set's name.
func (env *operatorEnv) retained() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "data"}}
}

func (env *operatorEnv) claim() *corev1.PersistentVolumeClaim {
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
			obj.Labels[LabelOwnerUID] == string(owner) && obj.Annotations[AnnotationRetained] == "true"
	}
}

// isOwned reports whether the claim has the owner reference and none of the marks.
func isOwned(owner types.UID) func(*corev1.PersistentVolumeClaim) bool {
	return func(obj *corev1.PersistentVolumeClaim) bool {
		return metav1.IsControlledBy(obj, &metav1.ObjectMeta{UID: owner}) && obj.Labels[LabelOwnerUID] == "" &&
			obj.Annotations[AnnotationOwner] == "" && obj.Annotations[AnnotationRetained] == ""
	}
}

// waitForCollector waits until the garbage collector has dealt with what belonged to the deleted owner.
func (env *operatorEnv) waitForCollector(t *testing.T, policy metav1.DeletionPropagation) {
	t.Helper()
	env.waitGone(t, env.owner)
	sentinel := namedConfigMap(env.namespace, "sentinel")
	if policy == metav1.DeletePropagationOrphan {
		waitFor(t, env, sentinel, func(m *corev1.ConfigMap) bool { return len(m.OwnerReferences) == 0 })
		return
	}
	env.waitGone(t, sentinel)
}

func TestRetain(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run("Deletion"+string(policy), func(t *testing.T) {
			env := newOperatorEnv(t)
			set, stop := env.start(t, env.retaining())
			env.create(t, env.owner)
			data := env.retained()
			waitFor(t, env, data, isRetainedFor(env.owner.UID))
			waitFor(t, env, namedConfigMap(env.namespace, "sentinel"), func(m *corev1.ConfigMap) bool { return len(m.OwnerReferences) == 1 })
			require.NoError(t, env.client.Delete(t.Context(), env.owner, client.PropagationPolicy(policy)))
			env.waitForCollector(t, policy)
			before, former := data.UID, env.owner.UID
			waitFor(t, env, data, isRetainedFor(former))
			require.Equal(t, before, data.UID)

			env.owner = env.newOwner()
			env.create(t, env.owner)
			set.waitForError(t, func(err error) bool {
				owned, is := errors.AsType[*OwnershipError](err)
				return is && owned.Retained && owned.Owner.UID == former
			})
			waitFor(t, env, data, isRetainedFor(former))
			stop()
			option := AdoptRetained
			if policy == metav1.DeletePropagationForeground {
				option = Adopt
			}
			env.start(t, env.retaining(option()))
			waitFor(t, env, data, isRetainedFor(env.owner.UID))
			require.Equal(t, before, data.UID)
		})
	}
	t.Run("TurnsFalseAndTrue", func(t *testing.T) {
		env := newOperatorEnv(t)
		env.start(t, env.retaining())
		env.create(t, env.owner)
		data := env.retained()
		waitFor(t, env, data, isRetainedFor(env.owner.UID))
		before := data.UID
		for range 2 {
			env.setAvailable(t, 0)
			waitFor(t, env, data, isOwned(env.owner.UID))
			env.setAvailable(t, 1)
			waitFor(t, env, data, isRetainedFor(env.owner.UID))
		}
		require.Equal(t, before, data.UID)
		env.setAvailable(t, 0)
		waitFor(t, env, data, isOwned(env.owner.UID))
		require.NoError(t, env.client.Delete(t.Context(), env.owner))
		env.waitGone(t, data)
	})
	t.Run("ChangedRightBeforeTheDeletion", func(t *testing.T) {
		for name, tc := range map[string]struct {
			reason        string
			before, after int32
		}{
			"TurnsTrue":  {reason: "The finalizer takes the reference off before the garbage collector follows it.", before: 0, after: 1},
			"TurnsFalse": {reason: "The finalizer deletes what has no reference yet.", before: 1, after: 0},
		} {
			t.Run(name, func(t *testing.T) {
				env := newOperatorEnv(t)
				_, stop := env.start(t, env.retaining())
				env.create(t, env.owner)
				env.setAvailable(t, tc.before)
				data := env.retained()
				if tc.before == 0 {
					waitFor(t, env, data, isOwned(env.owner.UID))
				} else {
					waitFor(t, env, data, isRetainedFor(env.owner.UID))
				}
				stop()
				env.setAvailable(t, tc.after)
				require.NoError(t, env.client.Delete(t.Context(), env.owner))
				env.start(t, env.retaining())
				env.waitForCollector(t, metav1.DeletePropagationBackground)
				if tc.after == 0 {
					env.waitGone(t, data)
					return
				}
				waitFor(t, env, data, isRetainedFor(env.owner.UID))
				t.Log(tc.reason)
			})
		}
	})
	t.Run("FallsOut", func(t *testing.T) {
		env := newOperatorEnv(t)
		list := func() *ChildSet[*budget] {
			return Ensure(BuildEach(func(owner *budget) (all []*corev1.PersistentVolumeClaim, err error) {
				if owner.Labels["no-data"] == "" {
					all = append(all, env.claim())
				}
				return all, nil
			}, Retain(func(owner *budget) bool { return owner.Spec.MinAvailable.IntValue() != 0 })))
		}
		env.start(t, list())
		env.create(t, env.owner)
		env.setAvailable(t, 0)
		data := env.retained()
		waitFor(t, env, data, isOwned(env.owner.UID))
		change(t, env, env.owner, func(b *budget) { // at once
			b.Labels, b.Spec.MinAvailable.IntVal = map[string]string{"no-data": "yes"}, 1
		})
		waitFor(t, env, data, isRetainedFor(env.owner.UID))
		env.setAvailable(t, 0)
		env.waitGone(t, data)
	})
}

// A claim of another application has the name that the owner's claim would have.
func TestAdoptRetainedLeavesOthersAlone(t *testing.T) {
	env := newOperatorEnv(t)
	theirs := env.claim()
	env.create(t, theirs)
	before := theirs.DeepCopy()
	set, stop := env.start(t, env.retaining(AdoptRetained()))
	env.create(t, env.owner)
	isRefused := func(err error) bool {
		_, is := errors.AsType[*OwnershipError](err)
		return is
	}
	set.waitForError(t, isRefused)
	env.setAvailable(t, 0) // it would go with the owner
	require.NoError(t, env.client.Delete(t.Context(), env.owner))
	env.waitForCollector(t, metav1.DeletePropagationBackground)
	stop()

	change(t, env, theirs, func(c *corev1.PersistentVolumeClaim) { // as an owner of another namespace has left it
		former := &owner{namespace: env.other, set: "children", reference: metav1.OwnerReference{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Name: "web", UID: "former"}}
		c.Annotations = former.marksFor(objectName{schema.GroupKind{Kind: "PersistentVolumeClaim"}, client.ObjectKeyFromObject(c)}, byRetention)
		c.Annotations[AnnotationSet] = "children"
		c.Annotations[AnnotationApplied] = "v1:applied:0123456789abcdef0123456789abcdef"
	})
	env.owner = env.newOwner()
	env.owner.Spec.MinAvailable.IntVal = 0
	set, _ = env.start(t, env.retaining(AdoptRetained()))
	env.create(t, env.owner)
	set.waitForError(t, isRefused)
	require.NoError(t, env.client.Delete(t.Context(), env.owner))
	env.waitForCollector(t, metav1.DeletePropagationBackground)
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	require.Equal(t, before.UID, theirs.UID)
	require.Nil(t, theirs.DeletionTimestamp)
	m, _ := markOf(theirs, schema.GroupKind{Kind: "PersistentVolumeClaim"})
	require.Equal(t, types.UID("former"), m.uid, "its mark is as it was")
	require.Empty(t, theirs.OwnerReferences)
	require.Empty(t, theirs.Labels)
}
