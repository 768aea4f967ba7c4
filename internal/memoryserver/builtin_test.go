package memoryserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// TestForbiddenChanges has the changes by whose refusal operators know that they have to make an
// object anew.
func TestForbiddenChanges(t *testing.T) {
	tests := map[string]struct {
		object client.Object
		change func(client.Object)
		want   string
	}{
		"a Deployment's selector": {testDeployment(), func(o client.Object) {
			labels := map[string]string{"app": "other"}
			o.(*appsv1.Deployment).Spec.Selector.MatchLabels, o.(*appsv1.Deployment).Spec.Template.Labels = labels, labels
		}, "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"other\"}}: field is immutable"},
		"a StatefulSet's service": {testStatefulSet(), func(o client.Object) { o.(*appsv1.StatefulSet).Spec.ServiceName = "other" },
			"spec: Forbidden: updates to statefulset spec for fields other than"},
		"a Job's template": {testJob(), func(o client.Object) { o.(*batchv1.Job).Spec.Template.Spec.Containers[0].Image = "nginx:2" },
			"field is immutable"},
		"a Service's address": {testService(), func(o client.Object) {
			o.(*corev1.Service).Spec.ClusterIP, o.(*corev1.Service).Spec.ClusterIPs = "10.96.0.77", []string{"10.96.0.77"}
		}, "spec.clusterIPs[0]: Invalid value: [\"10.96.0.77\"]: may not change once set"},
		"a Secret's type": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"}}, func(o client.Object) {
			o.(*corev1.Secret).Type = "example.com/other"
		}, "type: Invalid value: \"example.com/other\": field is immutable"},
		"an immutable ConfigMap's data": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}, Immutable: new(true)}, func(o client.Object) {
			o.(*corev1.ConfigMap).Data = map[string]string{"k": "v"}
		}, "data: Forbidden: field is immutable when `immutable` is set"},
		"a binding's role": {&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}}, func(o client.Object) {
			o.(*rbacv1.RoleBinding).RoleRef.Name = "other"
		}, "cannot change roleRef"},
		"a custom resource by its own rule": {testWidget(map[string]any{"class": "small"}), func(o client.Object) {
			fieldsOf(o)["spec"].(map[string]any)["class"] = "large"
		}, "the class cannot change"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestServer(t).Client()
			require.NoError(t, c.Create(t.Context(), tc.object))
			tc.change(tc.object)
			err := c.Update(t.Context(), tc.object)
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestServicesKeepWhatTheyWereGiven(t *testing.T) {
	c := newTestServer(t).Client()
	first, second := testService(), testService()
	second.Name = "t"
	require.NoError(t, c.Create(t.Context(), first))
	require.NoError(t, c.Create(t.Context(), second))
	require.NotEqual(t, first.Spec.ClusterIP, second.Spec.ClusterIP)
	again := testService()
	again.ResourceVersion, again.Spec.Type = first.ResourceVersion, corev1.ServiceTypeNodePort
	require.NoError(t, c.Update(t.Context(), again), "the address is left out")
	require.Equal(t, first.Spec.ClusterIP, again.Spec.ClusterIP)
	port := again.Spec.Ports[0].NodePort
	require.NotZero(t, port)
	again.Spec.Ports[0].NodePort = 0
	require.NoError(t, c.Update(t.Context(), again))
	require.Equal(t, port, again.Spec.Ports[0].NodePort)
	require.NoError(t, c.Delete(t.Context(), second))
	second = testService()
	second.Name, second.Spec.ClusterIP = "u", first.Spec.ClusterIP
	require.ErrorContains(t, c.Create(t.Context(), second), "provided IP is already allocated")
}

// TestPullPolicy is a table of image names, whose tags decide.
func TestPullPolicy(t *testing.T) {
	tests := map[string]corev1.PullPolicy{
		"nginx": corev1.PullAlways, "nginx:latest": corev1.PullAlways, "registry.example:5000/a/b": corev1.PullAlways,
		"nginx:1": corev1.PullIfNotPresent, "registry.example:5000/a/b:1": corev1.PullIfNotPresent, "nginx@sha256:" + digest: corev1.PullIfNotPresent,
		"": corev1.PullIfNotPresent, "Not An Image": corev1.PullIfNotPresent,
	}
	for image, want := range tests {
		require.Equal(t, want, pullPolicy(image), image)
	}
}
