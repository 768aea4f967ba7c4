package memory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/versions"
	"github.com/opblocks/opblocks/internal/writeloop"
)

func TestChildMemory(t *testing.T) {
	now := time.Unix(0, 0)
	difference := []compare.Difference{{Path: "spec.image", Have: "a", Want: "b"}}
	newMemory := func() *Children { return NewChildren(report.NewMetrics(), &versions.Epoch{}) }
	t.Run("ForgetEverything", func(t *testing.T) {
		m := newMemory()
		o, live, d := &owned.Owner{}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, &owned.Desired{}
		m.SetVerified(o, live, nil)
		m.SetRewritten("ConfigMap", "u", difference)
		m.CountWrite(d, "u", "data", now)
		m.OrphanSince("u", now)
		require.Len(t, shown(t, m.metrics, "opblocks_settled_differences"), 1)
		m.Forget("u")
		require.Empty(t, m.ByUID)
		require.Equal(t, []string{"ConfigMap,spec.image=0"}, shown(t, m.metrics, "opblocks_settled_differences"))
	})
	t.Run("Rewritten", func(t *testing.T) {
		m := newMemory()
		m.SetRewritten("ConfigMap", "u", difference)
		known, _ := m.DetailsOf("u")
		require.Equal(t, difference, known.Rewritten)
		_, found := m.DetailsOf("v")
		require.False(t, found, "another object")
		m.SetRewritten("ConfigMap", "u", nil)
		require.Empty(t, m.ByUID, "the last answer had no difference")
	})
	t.Run("Verified", func(t *testing.T) {
		m := newMemory()
		o := &owned.Owner{Reference: metav1.OwnerReference{UID: "o"}}
		live := func(uid types.UID, version string) client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
		}
		m.SetVerified(o, live("u", "1"), []byte("a"))
		require.True(t, m.IsVerified(o, live("u", "1"), []byte("a")))
		require.False(t, m.IsVerified(o, live("u", "2"), []byte("a")), "another version")
		require.False(t, m.IsVerified(o, live("u", "1"), []byte("b")), "another desired object")
		require.False(t, m.IsVerified(&owned.Owner{}, live("u", "1"), []byte("a")), "another owner")
		require.False(t, m.IsVerified(o, live("v", "1"), []byte("a")), "another object")
		m.SetVerified(o, live("", "1"), []byte("a"))
		require.False(t, m.IsVerified(o, live("", "1"), []byte("a")), "the fake client sets no UID")
	})
	t.Run("Orphan", func(t *testing.T) {
		m := newMemory()
		require.Equal(t, now, m.OrphanSince("u", now))
		require.Equal(t, now, m.OrphanSince("u", now.Add(time.Hour)), "it is one since it was first seen")
	})
}

func TestWriteLoopEnds(t *testing.T) {
	now := time.Unix(0, 0)
	m := NewChildren(report.NewMetrics(), &versions.Epoch{})
	k, err := owned.BuiltIn.Of(&corev1.ConfigMap{}, scheme.Scheme)
	require.NoError(t, err)
	d := &owned.Desired{Kind: k, Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}}
	for range 30 {
		m.CountWrite(d, "u", "spec.replicas", now)
	}
	wait, begins := m.DelayWrite(d, "u", "spec.replicas", now)
	require.Equal(t, writeloop.MaxDelay, wait, "the delay is bounded")
	require.True(t, begins)
	now = now.Add(writeloop.MaxDelay + writeloop.Gap)
	wait, _ = m.DelayWrite(d, "u", "spec.replicas", now)
	require.Zero(t, wait, "the loop ends when nothing was written for a while")
	require.Empty(t, m.ByUID)
	m.CountWrite(d, "u", "spec.replicas", now)
	m.Forget("u")
	require.Empty(t, m.ByUID, "nothing is left of a deleted object")
}

// shown returns the series of a metric, each as "label,label=value".
func shown(t *testing.T, m *report.Metrics, name string) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, m.Register(registry))
	families, err := registry.Gather()
	require.NoError(t, err)
	var all []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() != name {
				continue
			}
			labels := ""
			for _, l := range metric.GetLabel() {
				labels += l.GetValue() + ","
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			all = append(all, fmt.Sprintf("%s=%v", labels[:len(labels)-1], value))
		}
	}
	slices.Sort(all)
	return all
}
