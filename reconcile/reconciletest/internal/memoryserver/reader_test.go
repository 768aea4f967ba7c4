package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReader(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"Past": {
			reason: "a stale cache is stale for each kind on its own",
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
				}, nil)
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
		"Held": {
			reason: "a cache holds a part of the objects, and of each a part of its fields: this is made once",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				require.NoError(t, c.Create(ctx, testConfigMap("a")))
				require.NoError(t, c.Create(ctx, testConfigMap("b")))
				made := 0
				reader := s.Reader(func(schema.GroupVersionKind) int64 { return s.Revision() }, func(_ schema.GroupVersionKind, obj client.Object) (client.Object, error) {
					made++
					if obj.GetName() == "b" {
						return nil, nil
					}
					obj.(*corev1.ConfigMap).Data = nil
					return obj, nil
				})
				for range 2 {
					is, list := testConfigMap("a"), &corev1.ConfigMapList{}
					require.NoError(t, reader.Get(ctx, client.ObjectKeyFromObject(is), is))
					require.Empty(t, is.Data)
					require.True(t, apierrors.IsNotFound(reader.Get(ctx, client.ObjectKeyFromObject(testConfigMap("b")), is)))
					require.NoError(t, reader.List(ctx, list))
					require.Len(t, list.Items, 1)
					require.Empty(t, list.Items[0].Data)
				}
				require.Equal(t, 2, made)
			},
		},
		"WithoutCopy": {
			reason: "what reads share is a process's own: the server and other processes do not see that it is changed",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				made := testConfigMap("a")
				require.NoError(t, c.Create(ctx, made))
				reader := func() client.Reader {
					return s.Reader(func(schema.GroupVersionKind) int64 { return s.Revision() }, nil)
				}
				value := func(r client.Reader, options ...client.GetOption) string {
					is := &corev1.ConfigMap{}
					require.NoError(t, r.Get(ctx, client.ObjectKeyFromObject(made), is, options...))
					defer func() { is.Data["k"] = "changed without a request" }()
					return is.Data["k"]
				}
				one := reader()
				require.Equal(t, "v", value(one, client.UnsafeDisableDeepCopy))
				require.Equal(t, "changed without a request", value(one, client.UnsafeDisableDeepCopy), "memory is shared")
				require.Equal(t, "v", value(reader(), client.UnsafeDisableDeepCopy), "another process")
				require.Equal(t, "changed without a request", value(one), "a copy of it, as from a real cache")
				require.Equal(t, "changed without a request", value(one, &client.GetOptions{UnsafeDisableDeepCopy: new(false)}), "a copy of it")
				require.Equal(t, "v", value(c), "the server")
				made.Data["k"] = "changed"
				require.NoError(t, c.Update(ctx, made))
				require.Equal(t, "changed", value(one, client.UnsafeDisableDeepCopy))
			},
		},
	})
}
