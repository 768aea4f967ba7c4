package memoryserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

func TestAdvance(t *testing.T) {
	create := func(t *testing.T, s *memoryserver.Server, name string) *corev1.ConfigMap {
		t.Helper()
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		require.NoError(t, s.Client().Create(t.Context(), made))
		return made
	}
	made := map[bool]*corev1.ConfigMap{}
	for _, busy := range []bool{false, true} {
		s, err := memoryserver.New(clientgoscheme.Scheme)
		require.NoError(t, err)
		if busy {
			create(t, s, "another")
		}
		s.Advance(100)
		require.EqualValues(t, 100, s.Revision())
		made[busy] = create(t, s, "one")
		s.Advance(50) // is behind already
		changes := s.Changes(100)
		require.Len(t, changes, 1)
		require.Equal(t, "one", changes[0].Key.Name)
	}
	require.Equal(t, made[false].UID, made[true].UID)
	require.Equal(t, "101", made[false].ResourceVersion)
	require.Equal(t, made[false].ResourceVersion, made[true].ResourceVersion)
}
