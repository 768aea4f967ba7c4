package set

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/versions"
)

func TestOwnerMemory(t *testing.T) {
	ownerObject := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "o"}}
	k, err := owned.BuiltIn.Of(&corev1.ConfigMap{}, scheme.Scheme)
	require.NoError(t, err)
	child := func(name string) owned.Declared {
		return owned.Declared{Kind: k, Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}}
	}
	t.Run("ForgetEverything", func(t *testing.T) {
		m := newOwnerMemory(&versions.Epoch{})
		m.setPruned("o", m.digest(DesiredNames{Objects: []owned.Declared{child("a")}}))
		m.end("o", m.begin("o"), settledOwner{versions: 7})
		require.NotEmpty(t, m.ByUID)
		b := child("b")
		m.setBlocked(b.ObjectName(), client.ObjectKeyFromObject(ownerObject))
		m.forget(ownerObject)
		require.Empty(t, m.ByUID)
		require.Empty(t, m.blocked)
		require.Empty(t, m.pruned)
	})
	t.Run("Pruned", func(t *testing.T) {
		m := newOwnerMemory(&versions.Epoch{})
		one, two := m.digest(DesiredNames{Objects: []owned.Declared{child("a")}}), m.digest(DesiredNames{Objects: []owned.Declared{child("a"), child("b")}})
		require.False(t, m.isPruned("o", one), "after a restart")
		m.setPruned("o", one)
		require.True(t, m.isPruned("o", one))
		require.False(t, m.isPruned("o", two), "other names")
	})
	t.Run("Blocked", func(t *testing.T) {
		m := newOwnerMemory(&versions.Epoch{})
		name := client.ObjectKeyFromObject(ownerObject)
		other := types.NamespacedName{Namespace: "ns", Name: "other"}
		named := func(kind, name string) record.Name {
			return record.Name{Kind: schema.GroupKind{Group: "example.com", Kind: kind}, NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
		}
		m.setBlocked(named("Route", "a"), name)
		m.setBlocked(named("Route", "a"), name)
		m.setBlocked(named("Route", "a"), other)
		m.setBlocked(named("Gateway", "a"), other)
		require.Empty(t, m.takeBlocked(named("Route", "b")))
		require.Equal(t, []types.NamespacedName{name, other}, m.takeBlocked(named("Route", "a")), "all that wait are enqueued")
		require.Empty(t, m.takeBlocked(named("Route", "a")), "they are enqueued once")
		require.Equal(t, []types.NamespacedName{other}, m.takeBlocked(named("Gateway", "a")), "another kind without a Go type")
	})
}

// Two reconcilers that share a set may reconcile an owner at the same time. An event that comes while both run must not be lost when the
// first one ends.
func TestSettledOfTwoReconcilesAtOnce(t *testing.T) {
	m := newOwnerMemory(&versions.Epoch{})
	found := settledOwner{versions: 7}
	first, second := m.begin("o"), m.begin("o")
	m.observe("o")
	m.end("o", first, found)
	require.Zero(t, m.settledOf("o"))
	m.end("o", second, found)
	require.Zero(t, m.settledOf("o"))
	m.end("o", m.begin("o"), found)
	require.NotZero(t, m.settledOf("o"), "the next one is not disturbed")
	first = m.begin("o")
	m.forget(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "o"}})
	m.end("o", first, found)
	require.Empty(t, m.ByUID, "an owner that is gone is not remembered")
}
