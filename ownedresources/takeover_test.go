package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

// The fake client of controller-runtime tracks managed fields, but does not return them by default. A field that is
// not desired any more is removed all the same. If it cannot be known which fields are ours, that is an error.
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
			_ = children.Reconcile(t.Context(), c, owner) // the Deployment waits for pods, and nobody creates pods
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
		former.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, testkinds.ShopKind)}
		require.NoError(t, c.Create(t.Context(), former, client.FieldOwner("manager")))
		children := Ensure(Build(func(*Shop) *corev1.Service { return service(9090) }).FormerManagers("manager"))
		require.ErrorContains(t, children.Reconcile(t.Context(), c, owner), "WithReturnManagedFields")
	})
}
