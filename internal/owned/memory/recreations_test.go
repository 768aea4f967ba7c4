package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/internal/owned"
)

func TestRecreations(t *testing.T) {
	k, err := owned.BuiltIn.Of(&corev1.ConfigMap{}, scheme.Scheme)
	require.NoError(t, err)
	m := NewRecreations()
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	d := &owned.Desired{Kind: k, Object: child, Owner: &owned.Owner{Reference: metav1.OwnerReference{UID: "o"}}, Sum: owned.SumOf([]byte("a"))}
	created, putBack := child.DeepCopy(), child.DeepCopy()
	created.SetUID("created")
	putBack.SetUID("put back")
	m.Created(d, created.GetUID())
	require.False(t, m.Has(d, created), "nothing was deleted before")
	m.Begin(d)
	require.False(t, m.Has(d, putBack), "nothing was created yet")
	m.Created(d, created.GetUID())
	m.End(d)
	require.True(t, m.Has(d, created), "it was written for the same change")
	require.False(t, m.Has(d, putBack), "another writer has created it")
	another := *d
	another.Sum = owned.SumOf([]byte("b"))
	require.False(t, m.Has(&another, created))
	m.End(&another)
	require.False(t, m.Has(d, created), "it was written for another change")
	m.Begin(d)
	m.Forget("o")
	require.Empty(t, m.ByOwner)
}
