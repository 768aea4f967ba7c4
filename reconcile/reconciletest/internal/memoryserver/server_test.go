package memoryserver

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// applied applies an object by server-side apply.
func applied(ctx context.Context, c client.Client, manager string, object *unstructured.Unstructured, options ...client.PatchOption) error {
	content, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return c.Patch(ctx, object, client.RawPatch(types.ApplyYAMLPatchType, content), append(options, client.FieldOwner(manager))...)
}

func testService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"}},
	}
}

func testStatefulSet() *appsv1.StatefulSet {
	d := testDeployment()
	return &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{ServiceName: "s", Selector: d.Spec.Selector, Template: d.Spec.Template}}
}

func testJob() *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "default"}}
	job.Spec.Template.Spec = testDeployment().Spec.Template.Spec
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return job
}

// scenario shows one behaviour of the API server that operators rely on.
type scenario struct {
	reason string
	run    func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch)
}

func runScenarios(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, tc := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			s := newTestServer(t)
			tc.run(t, t.Context(), s, s.Client())
		})
	}
}

func TestUnknownKind(t *testing.T) {
	c := newTestServer(t).Client()
	other := testWidget(nil)
	other.SetKind("Gadget")
	err := c.Create(t.Context(), other)
	require.True(t, meta.IsNoMatchError(err), "callers test for it")
	require.ErrorContains(t, err, "give it the custom resource definition")
}

func TestServersShareNothing(t *testing.T) {
	first, second := newTestServer(t), newTestServer(t)
	require.NoError(t, first.Client().Create(t.Context(), testConfigMap("a")))
	require.Error(t, second.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}))
	require.NoError(t, second.Client().Create(t.Context(), testConfigMap("a")))
	require.Equal(t, first.Changes(0)[2].New.GetUID(), second.Changes(0)[2].New.GetUID(), "the same run has the same UIDs")
}

func TestVirtualTime(t *testing.T) {
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
	w := testWidget(map[string]any{"replicas": int64(1)})
	w.SetName("patched")
	require.NoError(b, c.Create(ctx, w))
	b.Run("patch custom", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			patch := fmt.Appendf(nil, `{"status":{"replicas":%d,"conditions":[{"type":"Ready","status":"True","message":"%d replicas"}]}}`, i%5, i%5)
			require.NoError(b, c.Status().Patch(ctx, w, client.RawPatch(types.MergePatchType, patch)))
		}
	})
	b.Run("apply custom", func(b *testing.B) {
		for i := int64(0); b.Loop(); i++ {
			require.NoError(b, applied(ctx, c, "a", testWidget(map[string]any{"replicas": i % 5}), client.ForceOwnership))
		}
	})
}

// The values that the server generates do not depend on the order in which objects are created.
func TestGeneratedValues(t *testing.T) {
	type values struct{ uids, addresses, names []string }
	create := func(t *testing.T, names ...string) map[string]values {
		t.Helper()
		c, all := newTestServer(t).Client(), map[string]values{}
		for _, name := range names {
			service, child := testService(), testConfigMap("")
			service.Name, child.GenerateName, service.Spec.Type = name, name+"-", corev1.ServiceTypeNodePort
			var v values
			for i := range 2 { // in the second round, new objects replace the deleted ones
				service.ResourceVersion, service.Spec.ClusterIP, service.Spec.ClusterIPs, service.Spec.Ports[0].NodePort = "", "", nil, 0
				child.Name, child.ResourceVersion = "", ""
				require.NoError(t, c.Create(t.Context(), service))
				require.NoError(t, c.Create(t.Context(), child))
				if i == 0 {
					require.NoError(t, c.Delete(t.Context(), service))
				}
				v.uids = append(v.uids, string(service.UID), string(child.UID))
				v.addresses = append(v.addresses, service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].NodePort))
				v.names = append(v.names, child.Name)
			}
			all[name] = v
		}
		return all
	}
	one := create(t, "a", "b", "c")
	require.Equal(t, one, create(t, "c", "a", "b"))
	issued := map[string]bool{}
	for _, v := range one {
		for _, value := range append(v.uids, v.names...) {
			require.False(t, issued[value], "%s is issued twice", value)
			issued[value] = true
		}
		require.Equal(t, v.addresses[:2], v.addresses[2:], "a service of the same name has the same address again")
	}
}

func TestCRDs(t *testing.T) {
	tests := map[string]struct {
		reason string
		option Option
		want   string
	}{
		"NoSuchPath":   {"the path is misspelt", CRDs("testdata/none"), "no such file"},
		"NoDefinition": {"the generator has not run, or writes elsewhere", CRDs("."), "no custom resource definition in .: name the folder or file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(testScheme, tc.option)
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}

// Like the real mapper, this one maps kinds without a version too.
func TestMappingWithoutAVersion(t *testing.T) {
	server, err := New(testScheme, CRDs(crdPaths...))
	require.NoError(t, err)
	for kind, want := range map[schema.GroupKind]string{
		{Group: "apps", Kind: "Deployment"}:                     "deployments v1",
		{Group: "", Kind: "Pod"}:                                "pods v1",
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: "horizontalpodautoscalers v2",
		{Group: "example.com", Kind: "Widget"}:                  "widgets v1",
	} {
		mapping, err := server.Client().RESTMapper().RESTMapping(kind)
		require.NoError(t, err)
		require.Equal(t, want, mapping.Resource.Resource+" "+mapping.Resource.Version)
	}
	_, err = server.Client().RESTMapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Unknown"})
	require.True(t, meta.IsNoMatchError(err))
}
