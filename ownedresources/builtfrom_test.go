package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/record"
)

// The annotation opblocks.dev/built-from of a child has a hash of the parts of the owner that the builders see. A new hash is written
// only together with another change of the child.
func TestBuiltFrom(t *testing.T) {
	env := newEnvInMemory(t)
	s := Ensure(Build(func(owner *Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"version": owner.Spec.Version}}
	}))
	builtFrom := func() string {
		require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
		made := &corev1.ConfigMap{}
		env.Live(t, made)
		return made.Annotations[record.BuiltFrom]
	}
	first := builtFrom()
	require.Regexp(t, "^v1:.", first)
	env.Owner.Labels = map[string]string{"team": "blue"}
	require.Equal(t, first, builtFrom(), "no write is sent for the annotation alone")
	env.Owner.Spec.Version = "2"
	second := builtFrom()
	require.Regexp(t, "^v1:.", second)
	require.NotEqual(t, first, second)
}
