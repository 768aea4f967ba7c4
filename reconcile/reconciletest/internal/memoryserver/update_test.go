package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestUpdate(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"NoChange": {
			reason: "tests find operators that write in a loop by the number of revisions",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				d := testDeployment()
				require.NoError(t, c.Create(ctx, d))
				version, revision := d.ResourceVersion, s.Revision()
				require.NoError(t, c.Update(ctx, d))
				require.Equal(t, version, d.ResourceVersion)
				require.Equal(t, revision, s.Revision())
			},
		},
		"Generation": {
			reason: "observedGeneration and GenerationChangedPredicate rely on it",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				d := testDeployment()
				require.NoError(t, c.Create(ctx, d))
				d.Labels = map[string]string{"l": "1"}
				require.NoError(t, c.Update(ctx, d))
				require.EqualValues(t, 1, d.Generation, "labels are not wanted state")
				d.Spec.Replicas = new(int32(5))
				d.Status.Replicas = 5
				require.NoError(t, c.Update(ctx, d))
				require.EqualValues(t, 2, d.Generation)
				require.Zero(t, d.Status.Replicas, "only the status subresource writes the status")
				d.Status.Replicas = 5
				d.Spec.Replicas = new(int32(9))
				require.NoError(t, c.Status().Update(ctx, d))
				require.EqualValues(t, 2, d.Generation)
				require.EqualValues(t, 5, d.Status.Replicas)
				require.EqualValues(t, 5, *d.Spec.Replicas, "and it writes nothing else")
			},
		},
		"Conflict": {
			reason: "optimistic locking",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				first := testConfigMap("a")
				require.NoError(t, c.Create(ctx, first))
				second := first.DeepCopy()
				first.Data["k"] = "1"
				require.NoError(t, c.Update(ctx, first))
				second.Data["k"] = "2"
				require.True(t, apierrors.IsConflict(c.Update(ctx, second)))
				second.ResourceVersion = ""
				require.NoError(t, c.Update(ctx, second), "built-in kinds allow not to lock")
				second.UID = "another"
				require.True(t, apierrors.IsConflict(c.Update(ctx, second)), "the object was made anew")
			},
		},
		"CustomResourceWithoutVersion": {
			reason: "the real server requires the resource version for custom resources",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				w := testWidget(map[string]any{})
				require.NoError(t, c.Create(ctx, w))
				w.SetResourceVersion("")
				err := c.Update(ctx, w)
				require.True(t, apierrors.IsInvalid(err))
				require.ErrorContains(t, err, "must be specified for an update")
			},
		},
	})
}

// TestUpdateRejected has changes that the API server rejects, so that operators have to recreate the object.
func TestUpdateRejected(t *testing.T) {
	tests := map[string]struct {
		reason string
		object client.Object
		change func(client.Object)
		want   string
	}{
		"DeploymentSelector": {"the selector of a Deployment is immutable", testDeployment(), func(o client.Object) {
			labels := map[string]string{"app": "other"}
			o.(*appsv1.Deployment).Spec.Selector.MatchLabels, o.(*appsv1.Deployment).Spec.Template.Labels = labels, labels
		}, "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"other\"}}: field is immutable"},
		"StatefulSetService": {"four fields of a StatefulSet are immutable", testStatefulSet(), func(o client.Object) { o.(*appsv1.StatefulSet).Spec.ServiceName = "other" },
			`spec.serviceName: Invalid value: "other": field is immutable`},
		"JobTemplate": {"the template of a Job is immutable", testJob(), func(o client.Object) { o.(*batchv1.Job).Spec.Template.Spec.Containers[0].Image = "nginx:2" },
			"field is immutable"},
		"ServiceAddress": {"a Service keeps its address", testService(), func(o client.Object) {
			o.(*corev1.Service).Spec.ClusterIP, o.(*corev1.Service).Spec.ClusterIPs = "10.96.0.77", []string{"10.96.0.77"}
		}, "spec.clusterIPs[0]: Invalid value: [\"10.96.0.77\"]: may not change once set"},
		"SecretType": {"the type of a Secret is immutable", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"}}, func(o client.Object) {
			o.(*corev1.Secret).Type = "example.com/other"
		}, "type: Invalid value: \"example.com/other\": field is immutable"},
		"ImmutableConfigMap": {"an immutable ConfigMap keeps its data", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}, Immutable: new(true)}, func(o client.Object) {
			o.(*corev1.ConfigMap).Data = map[string]string{"k": "v"}
		}, "data: Forbidden: field is immutable when `immutable` is set"},
		"RoleBindingRole": {"a binding keeps its role", &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}}, func(o client.Object) {
			o.(*rbacv1.RoleBinding).RoleRef.Name = "other"
		}, "field is immutable"},
		"PriorityClassValue": {"pods have the value already", &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Value: 1}, func(o client.Object) {
			o.(*schedulingv1.PriorityClass).Value = 2
		}, "value: Forbidden: may not be changed in an update."},
		"StorageClassPolicy": {"volumes have the policy already, here the default one", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Provisioner: "example.com/p"}, func(o client.Object) {
			o.(*storagev1.StorageClass).ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
		}, "reclaimPolicy: Invalid value: \"Retain\": field is immutable"},
		"RevisionData": {"a revision is a snapshot", &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "default"}, Data: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, func(o client.Object) {
			o.(*appsv1.ControllerRevision).Data.Raw = []byte(`{"a":2}`)
		}, "data: Invalid value: "},
		"CustomResourceRule": {"a custom resource may have transition rules of its own", testWidget(map[string]any{"class": "small"}), func(o client.Object) {
			o.(*unstructured.Unstructured).Object["spec"].(map[string]any)["class"] = "large"
		}, "the class cannot change"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestServer(t).Client()
			require.NoError(t, c.Create(t.Context(), tc.object))
			tc.change(tc.object)
			err := c.Update(t.Context(), tc.object)
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}
