package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

// The fake client of controller-runtime tracks managed fields, and does not return them unless it is told to.
func TestDroppedFieldsGoWithAFakeClient(t *testing.T) {
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u-1"}}
	service := func(port int32) *corev1.Service {
		return NewService(owner, nil, corev1.ServicePort{Port: port})
	}
	for name, plain := range map[string]*fake.ClientBuilder{
		"Plain": fake.NewClientBuilder(), "WithReturnManagedFields": fake.NewClientBuilder().WithReturnManagedFields(),
	} {
		t.Run(name, func(t *testing.T) {
			c := plain.Build()
			var live corev1.Service
			for _, port := range []int32{8080, 9090, 9091} {
				_, err := Apply(t.Context(), c, owner, service(port))
				require.NoError(t, err)
				require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(owner), &live))
				require.Len(t, live.Spec.Ports, 1)
				require.Equal(t, port, live.Spec.Ports[0].Port)
				live.Annotations["theirs"] = "kept"
				require.NoError(t, c.Update(t.Context(), &live))
			}
			require.Equal(t, "kept", live.Annotations["theirs"])
		})
	}
	t.Run("Ensure", func(t *testing.T) {
		c, env := fake.NewClientBuilder().Build(), []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
		children := Ensure(Build(func(owner *Shop) *appsv1.Deployment {
			return NewDeployment(owner, nil, corev1.Container{Name: "web", Image: "web:1", Env: env})
		}))
		for len(env) > 0 {
			_ = children.Reconcile(t.Context(), c, owner) // it waits for pods, which nobody creates
			var live appsv1.Deployment
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(owner), &live))
			require.Equal(t, env, live.Spec.Template.Spec.Containers[0].Env)
			env = env[1:]
		}
	})
	t.Run("AppliedByOthers", func(t *testing.T) {
		c := fake.NewClientBuilder().Build()
		_, err := Apply(t.Context(), c, owner, service(8080))
		require.NoError(t, err)
		require.NoError(t, c.Apply(t.Context(), corev1ac.Service("web", "shop").WithLabels(map[string]string{"team": "red"}), client.FieldOwner("theirs")))
		_, err = Apply(t.Context(), c, owner, service(9090))
		require.ErrorContains(t, err, "WithReturnManagedFields", "it is not known which fields are ours")
	})
	t.Run("FormerManagers", func(t *testing.T) {
		c := fake.NewClientBuilder().Build()
		former := service(8080)
		former.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, shopKind)}
		require.NoError(t, c.Create(t.Context(), former, client.FieldOwner("manager")))
		children := Ensure(Build(func(*Shop) *corev1.Service { return service(9090) }).FormerManagers("manager"))
		require.ErrorContains(t, children.Reconcile(t.Context(), c, owner), "WithReturnManagedFields")
	})
}

func TestMigrateDropsFieldsOfThePost(t *testing.T) {
	w := newServerEnv(t)
	w.expect(t, w.deployment(), apply.Created, "POST deployments")

	want := w.deployment()
	want.Spec.Template.Spec.Containers[0].Env = nil
	w.expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	var live appsv1.Deployment
	w.live(t, &live)
	require.Empty(t, live.Spec.Template.Spec.Containers[0].Env, "what the POST set can be removed")
	for _, entry := range live.ManagedFields {
		require.False(t, entry.Manager == "configmap" && entry.Operation == metav1.ManagedFieldsOperationUpdate,
			"the entry of the POST would hold fields for ever")
	}

	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, apply.Applied, "PATCH deployments")
	w.expect(t, want, apply.Unchanged, none...)
}

func TestMigrateFromAFormerManager(t *testing.T) {
	w := newServerEnv(t)
	old := w.deployment()
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.owner, shopKind)}
	old.Spec.Template.Spec.Containers[0].Env = append(old.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "OLD"})
	require.NoError(t, w.other.Create(t.Context(), old, client.FieldOwner("manager")))
	result, err := w.apply(t, w.deployment(), withFormerManagers("manager"))
	require.NoError(t, err)
	require.Equal(t, apply.Applied, result.Operation)
	var live appsv1.Deployment
	w.live(t, &live)
	require.Len(t, live.Spec.Template.Spec.Containers[0].Env, 1, "a field that the older operator set and that is not desired is removed")
	w.expect(t, w.deployment(), apply.Unchanged, none...)
}

func TestReleaseReplicas(t *testing.T) {
	for _, start := range []string{"AfterPost", "AfterApply"} {
		t.Run(start, func(t *testing.T) {
			w := newServerEnv(t)
			want := w.deployment()
			want.Spec.Replicas = new(int32(4))
			w.expect(t, want, apply.Created, "POST deployments")
			if start == "AfterApply" {
				want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
				w.expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
			}
			want.Spec.Replicas = nil
			_, err := w.apply(t, want)
			require.NoError(t, err)
			var live appsv1.Deployment
			w.live(t, &live)
			require.EqualValues(t, 4, *live.Spec.Replicas, "they are left to an autoscaler, and do not fall to 1")
			w.expect(t, want, apply.Unchanged, none...)

			byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
			w.expect(t, want, apply.Unchanged, none...)
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
			w.expect(t, want, apply.Applied, "PATCH deployments")
			w.live(t, &live)
			require.EqualValues(t, 7, *live.Spec.Replicas)

			want.Spec.Replicas = new(int32(2))
			w.expect(t, want, apply.Applied, "PATCH deployments")
			w.live(t, &live)
			require.EqualValues(t, 2, *live.Spec.Replicas, "set again, they are applied again")
		})
	}
}

func TestReplicasThatWereNeverSet(t *testing.T) {
	w := newServerEnv(t)
	want := w.deployment()
	want.Spec.Replicas = nil
	w.expect(t, want, apply.Created, "POST deployments")
	live := &appsv1.Deployment{}
	w.live(t, live)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	require.NoError(t, w.other.SubResource("scale").Update(t.Context(), live, client.WithSubResourceBody(scale)))
	w.expect(t, want, apply.Unchanged, none...)
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	w.live(t, live)
	require.EqualValues(t, 7, *live.Spec.Replicas)
}
