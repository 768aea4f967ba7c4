package ownedresources

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// emptyCache is a cache that has no objects yet.
type emptyCache struct{}

func (emptyCache) Get(_ context.Context, name client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
}

func (emptyCache) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// keptSet returns a set of one ConfigMap with these options.
func keptSet(options ...childOption) *ChildSet[*Shop] {
	return Ensure(with(Build(func(owner *Shop) *corev1.ConfigMap { return namedConfigMap(owner.Namespace, "kept") }), options...))
}

func keepsData(owner *Shop) bool { return owner.Spec.KeepData }

// finalizing sets the finalizer of a set on the owner, and the field KeepData. It returns the updated owner.
func (env *serverEnv) finalizing(t *testing.T, set *ChildSet[*Shop], keep bool) *Shop {
	t.Helper()
	owner := env.Owner.DeepCopy()
	env.Live(t, owner)
	owner.Finalizers, owner.Spec.KeepData = []string{set.FinalizerName()}, keep
	require.NoError(t, env.Other.Update(t.Context(), owner))
	return owner
}

// letGo removes the finalizers from an owner, and deletes it.
func (env *serverEnv) letGo(t *testing.T, owner *Shop) {
	t.Helper()
	ownedtest.ByHand(t, env.Server, owner, func(shop *Shop) { shop.Finalizers = nil })
	require.NoError(t, env.Other.Delete(t.Context(), owner))
}

// The cache of a process that has just started may still contain an owner that is gone.
func TestReconcileOfAnOwnerThatIsGone(t *testing.T) {
	tests := map[string]struct {
		reason  string
		options []childOption
		made    bool // the child was created, by an owner whose KeepData is keeps
		keeps   bool
		foreign bool // somebody else created an object with the child's name
		stale   bool // KeepData of the owner in the cache
	}{
		"CreatesNothingAnywhere":  {reason: "Nobody would ever delete it.", options: []childOption{withAnywhere()}, stale: true},
		"CreatesNothingRetained":  {reason: "Nobody would ever delete it.", options: []childOption{withRetain(keepsData)}, stale: true},
		"SetsNoReference":         {reason: "The garbage collector would delete the data.", options: []childOption{withRetain(keepsData)}, made: true, keeps: true},
		"TakesNoReferenceOff":     {reason: "The garbage collector is to delete it.", options: []childOption{withRetain(keepsData)}, made: true, stale: true},
		"AdoptsNothingAnywhere":   {reason: "It would belong to an owner that is gone.", options: []childOption{withAnywhere(), withAdopt()}, foreign: true, stale: true},
		"UnretainedStaysUnmarked": {reason: "It keeps its reference.", options: []childOption{withRetain(keepsData)}, made: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			set := keptSet(tc.options...)
			owner := env.finalizing(t, set, tc.keeps)
			switch {
			case tc.foreign:
				require.NoError(t, env.Other.Create(t.Context(), namedConfigMap(env.Namespace, "kept")))
			case tc.made:
				require.NoError(t, set.Reconcile(t.Context(), env.Client, owner))
			}
			before := namedConfigMap(env.Namespace, "kept")
			require.NoError(t, client.IgnoreNotFound(env.Other.Get(t.Context(), client.ObjectKeyFromObject(before), before)))
			stale := owner.DeepCopy()
			stale.Spec.KeepData = tc.stale
			env.letGo(t, owner)

			err := keptSet(tc.options...).Reconcile(t.Context(), env.Client, stale)
			if name != "UnretainedStaysUnmarked" {
				require.True(t, apierrors.IsConflict(err), "%v", err)
			}
			after := namedConfigMap(env.Namespace, "kept")
			require.NoError(t, client.IgnoreNotFound(env.Other.Get(t.Context(), client.ObjectKeyFromObject(after), after)))
			require.Equal(t, before, after, tc.reason)
		})
	}
}

// An earlier process may have created a child right before it died, and the cache may not contain the child yet.
// Finalize must find it.
func TestFinalizeFindsWhatTheCacheDoesNotShow(t *testing.T) {
	tests := map[string]struct {
		reason       string
		options      []childOption
		before, then bool // KeepData of the owner, first and later
		gone         bool
		referenced   bool
	}{
		"Anywhere":          {reason: "It would be left.", options: []childOption{withAnywhere()}, gone: true},
		"RetainedNoMore":    {reason: "It has no reference yet, so it would be left.", options: []childOption{withRetain(keepsData)}, before: true, gone: true},
		"Retained":          {reason: "It stays.", options: []childOption{withRetain(keepsData)}, before: true, then: true},
		"RetainedSinceThen": {reason: "The garbage collector would delete it by its reference.", options: []childOption{withRetain(keepsData)}, then: true},
		"NotRetained":       {reason: "The garbage collector deletes it.", options: []childOption{withRetain(keepsData)}, referenced: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			s := keptSet(tc.options...)
			owner := env.finalizing(t, s, tc.before)
			require.NoError(t, s.Reconcile(t.Context(), env.Client, owner))
			env.finalizing(t, s, tc.then)
			require.NoError(t, env.Other.Delete(t.Context(), owner))
			env.Live(t, owner)

			s = keptSet(tc.options...)
			s.set.Cache, s.set.APIReader = emptyCache{}, env.Other
			err := s.Finalize(t.Context(), env.Client, owner)
			kept := namedConfigMap(env.Namespace, "kept")
			if !tc.gone {
				require.NoError(t, err)
				require.True(t, env.Exists(t, kept), tc.reason)
				require.Equal(t, tc.referenced, metav1.IsControlledBy(kept, owner), tc.reason)
				require.Equal(t, !tc.referenced, kept.Annotations[record.Retained] == "true", tc.reason)
				return
			}
			var wait *owned.WaitingError
			require.ErrorAs(t, err, &wait)
			_, after := wait.Waiting()
			require.Equal(t, set.UnseenDelay, after, "its deletion may be no event")
			require.False(t, env.Exists(t, kept), tc.reason)
			require.NoError(t, s.Finalize(t.Context(), env.Client, owner), "the next time there is nothing left")
		})
	}
}

// Somebody has removed the finalizer of a deleted owner by hand, has created the owner again, and deletes it before
// it was reconciled.
func TestFinalizeDeletesWhatAFormerOwnerHasLeft(t *testing.T) {
	env := newEnvInMemory(t)
	s := keptSet(withAnywhere())
	former := env.finalizing(t, s, false)
	require.NoError(t, s.Reconcile(t.Context(), env.Client, former))
	env.letGo(t, former)
	kept := namedConfigMap(env.Namespace, "kept")
	require.True(t, env.Exists(t, kept))

	owner := newShop()
	owner.Namespace, owner.Finalizers = env.Namespace, []string{s.FinalizerName()}
	require.NoError(t, env.Other.Create(t.Context(), owner))
	require.NoError(t, env.Other.Delete(t.Context(), owner))
	env.Live(t, owner)
	requireWaits(t, s.Finalize(t.Context(), env.Client, owner), "ChildTerminating", "/kept; waits for their deletion")
	require.False(t, env.Exists(t, kept))
	require.NoError(t, s.Finalize(t.Context(), env.Client, owner))
}

// If a former owner has left objects, the present owner is not deleted before the last of them is gone.
func TestFinalizeWaitsForWhatAFormerOwnerHasLeft(t *testing.T) {
	c, s := reconciletest.NewClient(t, scheme.Scheme, shopsFile), keptSet(withAnywhere())
	create := func() *Shop {
		owner := newShop()
		owner.Finalizers = []string{s.FinalizerName()}
		require.NoError(t, c.Create(t.Context(), owner))
		return owner
	}
	former := create()
	require.NoError(t, s.Reconcile(t.Context(), c, former))
	kept := namedConfigMap(former.Namespace, "kept")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	kept.Finalizers = []string{"example.com/backup"}
	require.NoError(t, c.Update(t.Context(), kept))
	require.NoError(t, c.Delete(t.Context(), former))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(former), former))
	former.Finalizers = nil // by hand
	require.NoError(t, c.Update(t.Context(), former))

	owner := create()
	require.NoError(t, c.Delete(t.Context(), owner))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(owner), owner))
	for range 2 {
		requireWaits(t, s.Finalize(t.Context(), c, owner), "ChildTerminating", "/kept; waits for their deletion")
	}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	require.NotNil(t, kept.DeletionTimestamp)
	kept.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), kept))
	require.NoError(t, s.Finalize(t.Context(), c, owner))
}

// Without the finalizer on the owner, objects with the option Anywhere would stay when the owner is deleted.
func TestAnywhereNeedsTheFinalizer(t *testing.T) {
	env := newEnvInMemory(t)
	err := keptSet(withAnywhere()).Reconcile(t.Context(), env.Client, env.Owner)
	require.ErrorContains(t, err, "ConfigMap "+env.Namespace+"/kept would stay when Shop "+env.Namespace+"/web is deleted, which has no finalizer children.opblocks.dev/set")
	require.False(t, env.Exists(t, namedConfigMap("", "kept")))
}

func TestFinalizeOfALivingOwner(t *testing.T) {
	env := newEnvInMemory(t)
	set := keptSet(withAnywhere())
	owner := env.finalizing(t, set, false)
	require.NoError(t, set.Reconcile(t.Context(), env.Client, owner))
	owner.DeletionTimestamp = new(metav1.Now()) // in this copy only: nobody has deleted the owner
	require.True(t, apierrors.IsConflict(set.Finalize(t.Context(), env.Client, owner)))
	require.True(t, env.Exists(t, namedConfigMap("", "kept")))
}

// A new release uses the options Anywhere and Retain no more. It keeps the objects, and replaces their label and
// annotations by an owner reference.
func TestMarksAreReplacedByAReference(t *testing.T) {
	env := newEnvInMemory(t)
	for _, option := range []childOption{withAnywhere(), withRetain(keepsData)} {
		set := keptSet(option)
		owner := env.finalizing(t, set, true)
		require.NoError(t, set.Reconcile(t.Context(), env.Client, owner))
		require.NoError(t, keptSet().Reconcile(t.Context(), env.Client, owner))
		kept := namedConfigMap("", "kept")
		require.True(t, env.Exists(t, kept))
		require.True(t, metav1.IsControlledBy(kept, owner))
		require.Empty(t, kept.Labels)
		for _, key := range []string{record.Owner, record.Object, record.Retained} {
			require.NotContains(t, kept.Annotations, key)
		}
		env.Requests.Sent()
		require.NoError(t, keptSet().Reconcile(t.Context(), env.Client, owner))
		require.Equal(t, []string{"GET configmaps"}, env.Requests.Sent(), "the read that a cache serves")
		require.NoError(t, env.Other.Delete(t.Context(), kept))
	}
}

// The function of Retain becomes true in the change after which a child is no longer desired. The object stays, also if annotations name its
// owner in place of a reference.
func TestRetainAsAChildFallsOut(t *testing.T) {
	for name, options := range map[string][]childOption{"Reference": nil, "Anywhere": {withAnywhere()}} {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			set := Ensure(with(BuildEach(listedData), append(options, withRetain(keepsData))...))
			owner := env.finalizing(t, set, false)
			owner.Spec.Volumes = []string{"one"}
			require.NoError(t, env.Other.Update(t.Context(), owner))
			require.NoError(t, set.Reconcile(t.Context(), env.Client, owner))
			one := namedConfigMap("", "one")
			require.True(t, env.Exists(t, one))
			require.Empty(t, one.Annotations[record.Retained])
			owner.Spec.KeepData, owner.Spec.Volumes = true, nil
			require.NoError(t, env.Other.Update(t.Context(), owner))
			require.NoError(t, set.Reconcile(t.Context(), env.Client, owner))
			require.True(t, env.Exists(t, one))
			require.Equal(t, "true", one.Annotations[record.Retained])
		})
	}
}

func TestRetainAndRecreate(t *testing.T) {
	env := newEnvInMemory(t)
	require.EqualError(t, keptSet(withRetain(keepsData), withRecreate()).Reconcile(t.Context(), env.Client, env.Owner),
		"child 1, a ConfigMap: it has the options Retain and Recreate: Recreate would delete what Retain keeps; take one of them away")
}

// If nothing has changed, a reconcile only reads children without an owner reference, as it does with other children.
// A cache serves this read.
func TestQuietPassOfMarkedChildren(t *testing.T) {
	for name, option := range map[string]childOption{"Anywhere": withAnywhere(), "Retain": withRetain(keepsData)} {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			set := keptSet(option)
			owner := env.finalizing(t, set, true)
			require.NoError(t, set.Reconcile(t.Context(), env.Client, owner))
			for range 2 {
				env.Requests.Sent()
				require.NoError(t, set.Reconcile(t.Context(), env.Client, owner))
				require.Equal(t, []string{"GET configmaps"}, env.Requests.Sent(), "the read that a cache serves")
			}
		})
	}
}
