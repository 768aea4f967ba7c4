package memoryserver

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestServer(t).Client()
		present := testConfigMap("present")
		present.Labels = map[string]string{"l": "1"}
		require.NoError(t, c.Create(t.Context(), present))
		w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.MatchingLabels{"l": "1"})
		require.NoError(t, err)
		require.NoError(t, c.Create(t.Context(), testConfigMap("unlabelled")))
		present.Labels = nil
		require.NoError(t, c.Update(t.Context(), present))
		added := <-w.ResultChan()
		require.Equal(t, watch.Added, added.Type)
		left := <-w.ResultChan()
		require.Equal(t, watch.Deleted, left.Type, "an object that leaves the selection is deleted for the watcher")
		require.Equal(t, present.ResourceVersion, left.Object.(*corev1.ConfigMap).ResourceVersion)
		synctest.Wait()
		select {
		case event := <-w.ResultChan():
			t.Fatalf("another event: %v", event)
		default:
		}
		w.Stop()
		synctest.Wait()
		_, open := <-w.ResultChan()
		require.False(t, open)
	})
}
