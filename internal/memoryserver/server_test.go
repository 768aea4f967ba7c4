package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var testScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}()

func newTestServer(t testing.TB) *Server {
	t.Helper()
	s, err := New(testScheme, CRDs("testdata/widgets.yaml"))
	require.NoError(t, err)
	return s
}

func testDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}},
			},
		},
	}
}

func testConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"k": "v"}}
}

func testWidget(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "default"}, "spec": spec,
	}}
}

// applied sends a server-side apply of an object's fields.
func applied(ctx context.Context, c client.Client, manager string, object *unstructured.Unstructured, options ...client.PatchOption) error {
	content, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return c.Patch(ctx, object, client.RawPatch(types.ApplyYAMLPatchType, content), append(options, client.FieldOwner(manager))...)
}

func TestUnknownKindSaysWhatToDo(t *testing.T) {
	c := newTestServer(t).Client()
	other := testWidget(nil)
	other.SetKind("Gadget")
	err := c.Create(t.Context(), other)
	require.True(t, meta.IsNoMatchError(err), "controllers decide by this")
	require.ErrorContains(t, err, "give it the custom resource definition")
}

func TestServersAreApart(t *testing.T) {
	first, second := newTestServer(t), newTestServer(t)
	require.NoError(t, first.Client().Create(t.Context(), testConfigMap("a")))
	require.Error(t, second.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}))
	require.NoError(t, second.Client().Create(t.Context(), testConfigMap("a")))
	require.Equal(t, first.Changes(0)[2].New.GetUID(), second.Changes(0)[2].New.GetUID(), "the same run gives the same UIDs")
}

func TestOptions(t *testing.T) {
	tests := map[string]struct {
		reason string
		option Option
		want   string
	}{
		"no such path":  {"the author mistyped it", CRDs("testdata/none"), "no such file"},
		"nothing in it": {"the generator has not run, or writes elsewhere", CRDs("."), "no custom resource definition in .: name the folder or file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(testScheme, tc.option)
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}

func BenchmarkServer(b *testing.B) {
	s := newTestServer(b)
	ctx, c := b.Context(), s.Client()
	d := testDeployment()
	require.NoError(b, c.Create(ctx, d))
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			newTestServer(b)
		}
	})
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			_ = c.Get(ctx, client.ObjectKeyFromObject(d), d)
		}
	})
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			d := testDeployment()
			d.Name, d.GenerateName = "", "web-"
			require.NoError(b, c.Create(ctx, d))
		}
	})
	b.Run("update", func(b *testing.B) {
		for b.Loop() {
			d.Spec.Replicas = new(*d.Spec.Replicas + 1)
			require.NoError(b, c.Update(ctx, d))
		}
	})
	b.Run("status", func(b *testing.B) {
		for b.Loop() {
			d.Status.Replicas++
			require.NoError(b, c.Status().Update(ctx, d))
		}
	})
	b.Run("apply", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			u := untypedObject("Deployment", testDeployment())
			require.NoError(b, unstructured.SetNestedField(u.Object, i%2, "spec", "replicas"))
			require.NoError(b, applied(ctx, c, "a", u, client.ForceOwnership))
		}
	})
	b.Run("apply custom", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			require.NoError(b, applied(ctx, c, "a", testWidget(map[string]any{"replicas": i % 5}), client.ForceOwnership))
		}
	})
}
