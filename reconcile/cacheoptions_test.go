package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCacheOptions(t *testing.T) {
	require.Nil(t, CacheOptions().DefaultNamespaces, "all of them")
	options := CacheOptions("a", "b")
	require.Len(t, options.DefaultNamespaces, 2)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	got, err := options.DefaultTransform(d)
	require.NoError(t, err)
	require.Empty(t, got.(*appsv1.Deployment).ManagedFields)
}
