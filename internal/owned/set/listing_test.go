package set

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/internal/owned"
)

// The informer of the typed objects fills the index of children. So children are read as typed objects too.
func TestWatchedPlace(t *testing.T) {
	tree, typed, other := &Child{Sample: &unstructured.Unstructured{}}, &Child{Sample: &corev1.ConfigMap{}}, &Child{Sample: &unstructured.Unstructured{}}
	configMap := &owned.Kind{GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	secret := &owned.Kind{GVK: corev1.SchemeGroupVersion.WithKind("Secret")}
	children, kinds := []*Child{other, tree, typed}, []*owned.Kind{secret, configMap, configMap}
	require.Equal(t, 2, watchedPlace(children, kinds, 1), "the second child has the typed form")
	require.Equal(t, 0, watchedPlace(children, kinds, 0), "there is no typed form")
}
