package ownwrites

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func version(uid types.UID, rv string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: uid, ResourceVersion: rv}}
}

func TestNewer(t *testing.T) {
	written := version("u", "20")
	tests := map[string]struct {
		reason string
		cached *corev1.ConfigMap
		after  time.Duration
		ours   bool
	}{
		"CacheBehind":       {reason: "Our write is newer.", cached: version("u", "9"), ours: true},
		"CacheCaughtUp":     {reason: "The cache has caught up.", cached: version("u", "20")},
		"CacheAhead":        {reason: "Another writer wrote after us.", cached: version("u", "100")},
		"OtherObject":       {reason: "The object was deleted, and another was created under its name.", cached: version("v", "9")},
		"NotANumber":        {reason: "Versions that cannot be compared are not trusted.", cached: version("u", "abc")},
		"CacheNeverShowsIt": {reason: "Trust ends, or drift would be missed for ever.", cached: version("u", "9"), after: trust},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			w := New(clock)
			w.Record(written)
			clock.SetTime(clock.Now().Add(tc.after))
			want := client.Object(tc.cached)
			if tc.ours {
				want = written
			}
			unseen := w.Unseen(tc.cached, client.ObjectKeyFromObject(tc.cached))
			require.Same(t, want, w.Newer(unseen, tc.cached), tc.reason)
			require.Equal(t, tc.ours, w.count.Load() == 1, "a write that is of no more use is forgotten")
		})
	}
}

func TestForgetIf(t *testing.T) {
	w := New(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "v", ResourceVersion: "21"}}
	w.Record(version("u", "20"))
	w.Record(kept)
	w.ForgetIf(func(obj client.Object) bool { return obj.GetUID() == "u" })
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	require.Nil(t, w.Unseen(&corev1.ConfigMap{}, name))
	require.Same(t, kept, w.Unseen(&corev1.Secret{}, name))
	require.EqualValues(t, 1, w.count.Load())
}

func TestUnseen(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	tests := map[string]struct {
		reason string
		then   func(w *Writes)
		there  bool
	}{
		"JustCreated": {reason: "The cache will show it.", then: func(*Writes) {}, there: true},
		"OlderEvent":  {reason: "An event from before our write means nothing.", then: func(w *Writes) { w.Observe(version("u", "3")) }, there: true},
		"OwnEvent":    {reason: "If the cache showed it and does not any more, it was deleted.", then: func(w *Writes) { w.Observe(version("u", "20")) }},
		"Deletion":    {reason: "It is gone.", then: func(w *Writes) { w.Observe(version("u", "21")) }},
		"Forgotten":   {reason: "Forget was called.", then: func(w *Writes) { w.Forget(&corev1.ConfigMap{}, name) }},
		"OfOtherKind": {reason: "Objects of different kinds may have the same name.", then: func(w *Writes) { w.Forget(&corev1.Secret{}, name) }, there: true},
	}
	for testName, tc := range tests {
		t.Run(testName, func(t *testing.T) {
			w := New(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			w.Record(version("u", "20"))
			tc.then(w)
			require.Equal(t, tc.there, w.Unseen(&corev1.ConfigMap{}, name) != nil, tc.reason)
		})
	}
}

func TestPending(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w := New(clock)
	require.False(t, w.Pending())
	w.Record(version("u", "20"))
	require.True(t, w.Pending())
	clock.SetTime(clock.Now().Add(trust))
	require.False(t, w.Pending(), "a cache that never shows it is not waited for")
}

func TestRecordRemovesExpiredWrites(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w := New(clock)
	for i := range 10_000 {
		named := version("u", "20")
		named.SetName(strconv.Itoa(i))
		w.Record(named)
		clock.SetTime(clock.Now().Add(trust / 10))
	}
	require.Less(t, len(w.byKey), 2*firstSweep, "the cache's events may be filtered")
}
