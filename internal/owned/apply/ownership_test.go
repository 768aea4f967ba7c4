package apply_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

// TestForeignObjectStays proves that no write is sent to an object of another owner, whether the cache shows the object or not.
// TestDecide of package plan tests the rules.
func TestForeignObjectStays(t *testing.T) {
	for _, cache := range []string{"InTheCache", "NotInTheCache"} {
		t.Run(cache, func(t *testing.T) {
			w := newInMemory(t)
			theirs := w.Deployment()
			theirs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.NewOwnerNamed(t, "other"), testkinds.ShopKind)}
			theirs.Spec.Replicas = new(int32(9))
			w.Create(t, theirs)
			if cache == "NotInTheCache" {
				w.Client = blind{w.Client}
			}
			_, err := w.Apply(t, w.Deployment())
			var refused *owned.OwnershipError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "other", refused.Owner.Name, "the error names the controller")
			require.ErrorContains(t, err, "Shop other")
			var live appsv1.Deployment
			w.Live(t, &live)
			require.Equal(t, theirs.ResourceVersion, live.ResourceVersion)
		})
	}
}

func TestMayWriteWaitsForDeletion(t *testing.T) {
	w := newInMemory(t)
	w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
	live := &appsv1.Deployment{}
	ownedtest.ByHand(t, w, live, func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/hold"} })
	require.NoError(t, w.Other.Delete(t.Context(), live))
	_, err := w.Apply(t, w.Deployment())
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait)
	reason, after := wait.Waiting()
	require.Equal(t, "ChildTerminating", reason)
	require.Zero(t, after, "its deletion is an event")
	ownedtest.ByHand(t, w, live, func(d *appsv1.Deployment) { d.Finalizers = nil })
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.Other.Get(context.Background(), client.ObjectKeyFromObject(live), live))
	}, 10*time.Second, 20*time.Millisecond)
	w.Applier.Writes.Observe(live) // as the watch of the object would call it
	w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
}

// The control plane of these tests runs no garbage collector.
func TestDeleteOrphan(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(t *testing.T, w *ownedtest.Server, orphan *appsv1.Deployment)
		gone   bool
	}{
		"NamesakeIsGone": {
			reason: "The only owner of the object is gone.",
			change: func(*testing.T, *ownedtest.Server, *appsv1.Deployment) {},
			gone:   true,
		},
		"OwnerIsGone": {
			reason: "The cache still shows our owner, and already the child of its namesake.",
			change: func(_ *testing.T, w *ownedtest.Server, orphan *appsv1.Deployment) {
				w.Owner = w.Owner.DeepCopy()
				orphan.OwnerReferences[0].UID, w.Owner.UID = w.Owner.UID, "of-old"
			},
		},
		"BothAreGone": {
			reason: "The next pass finds nothing to do.",
			change: func(t *testing.T, w *ownedtest.Server, _ *appsv1.Deployment) {
				require.NoError(t, w.Other.Delete(t.Context(), w.Owner))
			},
		},
		"AnotherOwner": {
			reason: "The other owner may live: the garbage collector would only remove the reference.",
			change: func(t *testing.T, w *ownedtest.Server, orphan *appsv1.Deployment) {
				other := w.NewOwnerNamed(t, "other")
				orphan.OwnerReferences = append(orphan.OwnerReferences, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Shop", Name: "other", UID: other.UID})
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newInMemory(t)
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			w.Applier.Clock = clock
			namesake := w.Owner.DeepCopy()
			namesake.UID = types.UID("of-namesake")
			orphan := w.Deployment()
			orphan.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(namesake, testkinds.ShopKind)}
			tc.change(t, w, orphan)
			require.NoError(t, w.Other.Create(t.Context(), orphan))

			waits := func(after time.Duration) {
				t.Helper()
				_, err := w.Apply(t, w.Deployment())
				var waiting *owned.WaitingError
				require.ErrorAs(t, err, &waiting)
				require.ErrorContains(t, err, "waits for the garbage collector")
				_, got := waiting.Waiting()
				require.Equal(t, after, got)
			}
			waits(owned.GarbageCollectorDelay)
			clock.SetTime(clock.Now().Add(owned.GarbageCollectorDelay - time.Second))
			waits(time.Second)
			require.True(t, w.Exists(t, &appsv1.Deployment{ObjectMeta: orphan.ObjectMeta}), "its time is not over")
			clock.SetTime(clock.Now().Add(time.Second))
			waits(owned.GarbageCollectorDelay)
			require.Equal(t, tc.gone, !w.Exists(t, &appsv1.Deployment{ObjectMeta: orphan.ObjectMeta}), tc.reason)
			if tc.gone {
				w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
			}
		})
	}
}
