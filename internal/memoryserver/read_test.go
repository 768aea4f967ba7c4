package memoryserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReads(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"a reader shows the past": {
			reason: "what a cache shows that is behind, of each kind on its own",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				m := testConfigMap("a")
				require.NoError(t, c.Create(ctx, m))
				created := s.Revision()
				m.Data["k"] = "changed"
				require.NoError(t, c.Update(ctx, m))
				require.NoError(t, c.Create(ctx, testDeployment()))
				at := created
				reader := s.Reader(func(gvk schema.GroupVersionKind) int64 {
					if gvk.Kind == "ConfigMap" {
						return at
					}
					return 0
				})
				require.NoError(t, reader.Get(ctx, client.ObjectKeyFromObject(m), m))
				require.Equal(t, "v", m.Data["k"])
				require.Equal(t, "ConfigMap", m.Kind, "a cache sets it")
				require.True(t, apierrors.IsNotFound(reader.Get(ctx, client.ObjectKeyFromObject(testDeployment()), testDeployment())))
				at = created - 1
				list := &corev1.ConfigMapList{}
				require.NoError(t, reader.List(ctx, list))
				require.Empty(t, list.Items)
				at = s.Revision()
				require.NoError(t, reader.List(ctx, list, client.InNamespace("default")))
				require.Equal(t, "changed", list.Items[0].Data["k"])
			},
		},
		"changes tell what happened": {
			reason: "a driver delivers them as events",
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
		"every form of an object can be read": {
			reason: "typed, untyped and metadata only, alone and in lists",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := testConfigMap("a")
				m.Labels = map[string]string{"l": "1"}
				require.NoError(t, c.Create(ctx, m))
				require.NoError(t, c.Create(ctx, testConfigMap("b")))
				untyped := newObject("ConfigMap")
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(m), untyped))
				require.Equal(t, map[string]any{"k": "v"}, untyped.Object["data"])
				partial := &metav1.PartialObjectMetadata{}
				partial.SetGroupVersionKind(untyped.GroupVersionKind())
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(m), partial))
				require.Equal(t, m.UID, partial.UID)
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
				require.NoError(t, c.List(ctx, list, client.MatchingLabels{"l": "1"}))
				require.Len(t, list.Items, 1)
				partials := &metav1.PartialObjectMetadataList{}
				partials.SetGroupVersionKind(list.GroupVersionKind())
				require.NoError(t, c.List(ctx, partials, client.InNamespace("default"), &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "b")}))
				require.Len(t, partials.Items, 1)
			},
		},
		"what is read can be written to": {
			reason: "the store keeps its own copy",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := testConfigMap("a")
				require.NoError(t, c.Create(ctx, m))
				m.Data["k"] = "mine"
				stored := &corev1.ConfigMap{}
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(m), stored))
				require.Equal(t, "v", stored.Data["k"])
			},
		},
		"a request of a process that ended is refused": {
			reason: "the context says so",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				revision := s.Revision()
				require.ErrorIs(t, c.Create(ctx, testConfigMap("a")), context.Canceled)
				require.ErrorIs(t, c.List(ctx, &corev1.ConfigMapList{}), context.Canceled)
				require.Equal(t, revision, s.Revision())
			},
		},
	})
}

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

func TestTimeIsVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestServer(t).Client()
		start := time.Now()
		time.Sleep(time.Hour)
		m := testConfigMap("a")
		require.NoError(t, c.Create(t.Context(), m))
		require.True(t, m.CreationTimestamp.Time.Equal(start.Add(time.Hour)))
		require.True(t, m.ManagedFields[0].Time.Time.Equal(start.Add(time.Hour)))
	})
}
