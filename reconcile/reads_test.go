package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func nothing(*budget) []types.NamespacedName { return nil }

func TestReferencingNamespace(t *testing.T) {
	kept := []types.NamespacedName{{Name: "own"}, {Namespace: "other", Name: "given"}}
	n := Named("one", returning(nil)).Reads(&corev1.Secret{}, func(*budget) []types.NamespacedName { return kept })
	want := []types.NamespacedName{{Namespace: "ns", Name: "own"}, {Namespace: "other", Name: "given"}}
	if diff := cmp.Diff(want, n.references[0].Names(newBudget())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	require.Empty(t, kept[0].Namespace, "the returned slice, which may belong to the object in the cache, is not changed")
}

func TestVersionOf(t *testing.T) {
	of := func(uid, version string) string {
		return VersionOf(&metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version})
	}
	require.Equal(t, of("a", "1"), of("a", "1"))
	require.NotEqual(t, of("a", "1"), of("a", "2"), "changed")
	require.NotEqual(t, of("a", "1"), of("b", "1"), "deleted and created again")
}
