package reconciletest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// Two clients have two servers, so that tests may run side by side.
func TestNewClient(t *testing.T) {
	one, two := reconciletest.NewClient(t, clientgoscheme.Scheme), reconciletest.NewClient(t, clientgoscheme.Scheme, "testdata")
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	}
	for range 2 {
		require.NoError(t, one.Create(t.Context(), object()))
		require.True(t, apierrors.IsAlreadyExists(one.Create(t.Context(), object())))
		one = two
	}
}
