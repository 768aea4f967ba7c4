package memoryserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
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
	s, err := New(testScheme, CRDs("../../examples/memcached/config/crd/bases", "../../examples/app/config/crd/bases",
		"../../examples/databaseuser/config/crd/bases"))
	require.NoError(t, err)
	return s
}

func testDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "nginx:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				}}},
			},
		},
	}
}

func testMemcached() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
		"metadata": map[string]any{"name": "cache", "namespace": "default"},
		"spec":     map[string]any{"size": int64(3)},
	}}
}

func TestSmoke(t *testing.T) {
	s := newTestServer(t)
	c := s.Client()
	ctx := t.Context()
	d := testDeployment()
	require.NoError(t, c.Create(ctx, d))
	require.True(t, apierrors.IsAlreadyExists(c.Create(ctx, testDeployment())))
	require.EqualValues(t, 1, d.Generation)
	rv := d.ResourceVersion
	require.NoError(t, c.Update(ctx, d))
	require.Equal(t, rv, d.ResourceVersion)
	d.Spec.Replicas = ptr.To[int32](4)
	require.NoError(t, c.Update(ctx, d))
	require.EqualValues(t, 2, d.Generation)
	d.Status.Replicas = 4
	require.NoError(t, c.Status().Update(ctx, d))
	require.EqualValues(t, 2, d.Generation)
	m := testMemcached()
	require.NoError(t, c.Create(ctx, m))
	t.Log(m.Object)
	require.NoError(t, unstructured.SetNestedField(m.Object, int64(5), "spec", "size"))
	m.SetManagedFields(nil)
	require.NoError(t, c.Patch(ctx, m, client.Merge))
	require.EqualValues(t, 2, m.GetGeneration())
	a := testMemcached()
	require.True(t, apierrors.IsConflict(c.Patch(ctx, a, client.Apply, client.FieldOwner("x"))), "size is owned")
	require.NoError(t, c.Patch(ctx, a, client.Apply, client.FieldOwner("x"), client.ForceOwnership))
	t.Log(a.Object)
	child := testDeployment()
	child.Name = "child"
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cache.example.com/v1alpha1", Kind: "Memcached", Name: "cache", UID: m.GetUID(), Controller: ptr.To(true)}}
	require.NoError(t, c.Create(ctx, child))
	require.False(t, s.CollectGarbage())
	require.NoError(t, c.Delete(ctx, a))
	require.True(t, s.CollectGarbage())
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(child), child)))
	for _, change := range s.Changes(0) {
		t.Log(change.Revision, change.Type, change.Key, change.GVK.Kind)
	}
}

func BenchmarkServer(b *testing.B) {
	s := newTestServer(b)
	ctx := b.Context()
	c := s.Client()
	d := testDeployment()
	require.NoError(b, c.Create(ctx, d))
	m := testMemcached()
	require.NoError(b, c.Create(ctx, m))
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			newTestServer(b)
		}
	})
	b.Run("get deployment", func(b *testing.B) {
		for b.Loop() {
			_ = c.Get(ctx, client.ObjectKeyFromObject(d), d)
		}
	})
	b.Run("get memcached", func(b *testing.B) {
		for b.Loop() {
			_ = c.Get(ctx, client.ObjectKeyFromObject(m), m)
		}
	})
	b.Run("create deployment", func(b *testing.B) {
		for b.Loop() {
			d := testDeployment()
			d.Name, d.GenerateName = "", "web-"
			require.NoError(b, c.Create(ctx, d))
		}
	})
	b.Run("create memcached", func(b *testing.B) {
		for b.Loop() {
			d := testMemcached()
			d.SetName("")
			d.SetGenerateName("m-")
			require.NoError(b, c.Create(ctx, d))
		}
	})
	b.Run("update deployment", func(b *testing.B) {
		for b.Loop() {
			d.Spec.Replicas = ptr.To(*d.Spec.Replicas + 1)
			require.NoError(b, c.Update(ctx, d))
		}
	})
	b.Run("update deployment status", func(b *testing.B) {
		for b.Loop() {
			d.Status.Replicas++
			require.NoError(b, c.Status().Update(ctx, d))
		}
	})
	b.Run("apply deployment", func(b *testing.B) {
		for b.Loop() {
			d := testDeployment()
			d.APIVersion, d.Kind = "apps/v1", "Deployment"
			require.NoError(b, c.Patch(ctx, d, client.Apply, client.FieldOwner("a"), client.ForceOwnership))
		}
	})
	b.Run("apply memcached", func(b *testing.B) {
		i := int64(0)
		for b.Loop() {
			d := testMemcached()
			i++
			_ = unstructured.SetNestedField(d.Object, i%5+1, "spec", "size")
			require.NoError(b, c.Patch(ctx, d, client.Apply, client.FieldOwner("a"), client.ForceOwnership))
		}
	})
}
