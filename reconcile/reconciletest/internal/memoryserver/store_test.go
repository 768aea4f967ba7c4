package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestChanges(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"EventTypes": {
			reason: "the simulation delivers them as events",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				since := s.Revision()
				m := testConfigMap("a")
				require.NoError(t, c.Create(ctx, m))
				m.Data["k"] = "changed"
				require.NoError(t, c.Update(ctx, m))
				require.NoError(t, c.Delete(ctx, m))
				changes := s.Changes(since)
				require.Len(t, changes, 3)
				for i, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
					require.Equal(t, want, changes[i].Type)
					require.Equal(t, since+int64(i)+1, changes[i].Revision)
					require.Equal(t, client.ObjectKeyFromObject(m), changes[i].Key)
				}
				require.Nil(t, changes[0].Old)
				require.Equal(t, "v", changes[1].Old.(*corev1.ConfigMap).Data["k"])
				require.Equal(t, "changed", changes[2].Old.(*corev1.ConfigMap).Data["k"])
				require.Nil(t, changes[2].New)
			},
		},
	})
}

func TestAdvance(t *testing.T) {
	create := func(t *testing.T, s *Server, name string) *corev1.ConfigMap {
		t.Helper()
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		require.NoError(t, s.Client().Create(t.Context(), created))
		return created
	}
	created := map[bool]*corev1.ConfigMap{}
	for _, busy := range []bool{false, true} {
		s, err := New(testScheme)
		require.NoError(t, err)
		if busy {
			create(t, s, "another")
		}
		s.Advance(100)
		require.EqualValues(t, 100, s.Revision())
		created[busy] = create(t, s, "one")
		s.Advance(50) // does nothing: the server has passed this revision
		changes := s.Changes(100)
		require.Len(t, changes, 1)
		require.Equal(t, "one", changes[0].Key.Name)
	}
	require.Equal(t, created[false].UID, created[true].UID)
	require.Equal(t, "101", created[false].ResourceVersion)
	require.Equal(t, created[false].ResourceVersion, created[true].ResourceVersion)
}
