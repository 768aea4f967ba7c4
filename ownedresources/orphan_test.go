package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// The control plane of these tests has no garbage collector at all.
func TestOrphanThatNobodyCollects(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(t *testing.T, w *world, orphan *appsv1.Deployment)
		gone   bool
	}{
		"the namesake is gone": {
			reason: "an object of which the only owner is gone",
			change: func(*testing.T, *world, *appsv1.Deployment) {},
			gone:   true,
		},
		"we are the one that is gone": {
			reason: "the cache shows us still, and our namesake's child already",
			change: func(_ *testing.T, w *world, orphan *appsv1.Deployment) {
				w.owner = w.owner.DeepCopy()
				orphan.OwnerReferences[0].UID, w.owner.UID = w.owner.UID, "of-old"
			},
		},
		"neither is there": {
			reason: "our next pass finds nothing to do",
			change: func(t *testing.T, w *world, _ *appsv1.Deployment) {
				require.NoError(t, w.other.Delete(t.Context(), w.owner))
			},
		},
		"another owner": {
			reason: "which may be alive: the garbage collector would only take off the reference",
			change: func(t *testing.T, w *world, orphan *appsv1.Deployment) {
				other := w.newOwner(t, "other")
				orphan.OwnerReferences = append(orphan.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: other.UID})
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			w.applier.orphans = newOrphans(clock)
			namesake := w.owner.DeepCopy()
			namesake.UID = types.UID("of-namesake")
			orphan := w.deployment()
			orphan.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(namesake, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
			tc.change(t, w, orphan)
			require.NoError(t, w.other.Create(t.Context(), orphan))

			waits := func(after time.Duration) {
				t.Helper()
				_, err := w.apply(t, w.deployment())
				var waiting *WaitingError
				require.ErrorAs(t, err, &waiting)
				require.ErrorContains(t, err, "waits for the garbage collector")
				_, got := waiting.Waiting()
				require.Equal(t, after, got)
			}
			waits(collectorsTime)
			clock.SetTime(clock.Now().Add(collectorsTime - time.Second))
			waits(time.Second)
			require.True(t, w.exists(t, &appsv1.Deployment{ObjectMeta: orphan.ObjectMeta}), "its time is not over")
			clock.SetTime(clock.Now().Add(time.Second))
			waits(collectorsTime)
			require.Equal(t, tc.gone, !w.exists(t, &appsv1.Deployment{ObjectMeta: orphan.ObjectMeta}), tc.reason)
			if tc.gone {
				w.expect(t, w.deployment(), Created, "POST deployments")
			}
		})
	}
}
