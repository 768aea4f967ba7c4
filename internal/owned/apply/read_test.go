package apply_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
)

// The event of our last write may come right after the cache was read. What was read is older than the write, which must not be forgotten.
func TestReadBeforeTheEventOfAWrite(t *testing.T) {
	version := func(resourceVersion string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: resourceVersion}}
	}
	tests := map[string]struct {
		reason string
		cached *corev1.ConfigMap // nil: the cache does not have it
	}{
		"Created": {"it would be created once more", nil},
		"Changed": {"it would be changed once more", version("9")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, written := apply.New(), version("20")
			a.Writes.Record(written)
			cache := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
					defer a.Writes.Observe(version("20"))
					if tc.cached == nil {
						return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
					}
					tc.cached.DeepCopyInto(obj.(*corev1.ConfigMap))
					return nil
				},
			}).Build()
			kind, err := owned.BuiltIn.Of(written, scheme.Scheme)
			require.NoError(t, err)
			live, fromCache, err := a.Read(t.Context(), &owned.Owner{Client: cache}, kind, written)
			require.NoError(t, err)
			require.Same(t, written, live, tc.reason)
			require.False(t, fromCache)
		})
	}
}
