package reconcile

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/opblocks/opblocks/internal/record"
)

func TestCacheOptions(t *testing.T) {
	require.Nil(t, CacheOptions().DefaultNamespaces, "without an argument the cache holds all namespaces")
	options := CacheOptions("a", "b")
	require.Len(t, options.DefaultNamespaces, 2)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	got, err := options.DefaultTransform(d)
	require.NoError(t, err)
	require.Empty(t, got.(*appsv1.Deployment).ManagedFields)

	cleared := d.DeepCopy()
	cleared.Annotations = map[string]string{record.Applied: "v1:applied:1"}
	cleared.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	got, err = options.DefaultTransform(cleared)
	require.NoError(t, err)
	require.NotEmpty(t, got.(*appsv1.Deployment).ManagedFields, "the operator needs them to find out which fields are its own")
}

// decoded returns a new copy of a string, as a decoder makes it for each value.
func decoded(s string) string { return strings.Clone(s) }

func decodedDeployment(name string) *appsv1.Deployment {
	labels := func() map[string]string { return map[string]string{decoded("app"): decoded(name)} }
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: decoded("shop"), Name: decoded(name), Labels: labels(), Annotations: map[string]string{decoded("note"): decoded("n")},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}, Finalizers: []string{decoded("example.com/f")},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels()},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: decoded("main"), Image: decoded("nginx"),
					Ports:          []corev1.ContainerPort{{Name: decoded("http"), Protocol: corev1.Protocol(decoded("TCP"))}},
					LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString(decoded("http"))}}},
					Resources:      corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("100m")}},
					ReadinessProbe: nil,
				}}},
			},
		},
	}
}

// at returns the address of the bytes of a string.
func at(s string) uintptr { return reflect.ValueOf(s).Pointer() }

func TestTransformCompact(t *testing.T) {
	compact := TransformCompact()
	a, b := decodedDeployment("a"), decodedDeployment("b")
	for _, obj := range []any{a, b} {
		same, err := compact(obj)
		require.NoError(t, err)
		require.Same(t, obj, same)
	}
	port := func(d *appsv1.Deployment) *corev1.ContainerPort { return &d.Spec.Template.Spec.Containers[0].Ports[0] }
	probe := func(d *appsv1.Deployment) string {
		return d.Spec.Template.Spec.Containers[0].LivenessProbe.HTTPGet.Port.StrVal
	}
	require.Equal(t, at(a.Namespace), at(b.Namespace), "strings of fields are shared between objects")
	require.Equal(t, at(a.Finalizers[0]), at(b.Finalizers[0]), "strings in lists are shared")
	require.Equal(t, at(port(a).Name), at(probe(b)), "strings behind pointers are shared")
	require.Equal(t, at(string(port(a).Protocol)), at(string(port(b).Protocol)), "strings of named types are shared")
	require.Equal(t, at(a.Name), at(a.Labels["app"]), "values of maps are shared")

	a.Labels["app"] = "changed" // this forbidden write to a shared map shows which maps are shared
	require.Equal(t, "changed", a.Spec.Template.Labels["app"], "equal maps of one object share their memory")
	require.Equal(t, "changed", a.Spec.Selector.MatchLabels["app"])
	require.Equal(t, "n", a.Annotations["note"], "a map that differs stays apart")
	require.Equal(t, "b", b.Labels["app"], "objects do not share maps")
	copied := b.DeepCopy()
	copied.Labels["app"] = "changed"
	require.Equal(t, "b", copied.Spec.Template.Labels["app"], "the maps of a copy are apart")
}

func TestTransformCompactChangesNothingElse(t *testing.T) {
	tests := map[string]struct {
		reason string
		obj    any
	}{
		"Typed":        {"lists, maps, pointers, times and quantities stay equal", decodedDeployment("a")},
		"Empty":        {"an empty object has nothing to share", &corev1.ConfigMap{}},
		"Values":       {"contents that are not strings stay equal", &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}, StringData: map[string]string{"a": "b"}}},
		"Metadata":     {"a kind may be watched by its metadata only", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}}},
		"WithoutAType": {"the maps of an unstructured object hold values of any type", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"x": int64(1)}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := tc.obj.(interface{ DeepCopyObject() runtime.Object }).DeepCopyObject()
			want.(metav1.Object).SetManagedFields(nil)
			compact := TransformCompact()
			for range 2 { // client-go may transform an object twice
				got, err := compact(tc.obj)
				require.NoError(t, err)
				require.Empty(t, cmp.Diff(want, got, cmp.Comparer(func(a, b apiresource.Quantity) bool { return a.Cmp(b) == 0 })), tc.reason)
			}
		})
	}
}

func TestTransformCompactTombstone(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/a", Obj: decodedDeployment("a")}
	got, err := TransformCompact()(tombstone)
	require.NoError(t, err)
	require.Equal(t, tombstone, got)
}

// Each kind has an informer, and each informer transforms objects in its own goroutine.
func TestTransformCompactConcurrently(t *testing.T) {
	compact := TransformCompact()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				_, _ = compact(decodedDeployment(fmt.Sprint(i)))
			}
		})
	}
	wg.Wait()
}

func BenchmarkTransformCompact(b *testing.B) {
	compact := TransformCompact()
	d := decodedDeployment("a")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = compact(d)
	}
}
