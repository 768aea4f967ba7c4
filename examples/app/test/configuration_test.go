package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestReferencesRoll checks that pods are replaced when a ConfigMap or Secret changes or is created again.
func TestReferencesRoll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		refer  func(*appv1.AppSpec, string)
		object func(name, value string) client.Object
	}{
		"ConfigMap": {
			func(s *appv1.AppSpec, name string) { s.ConfigMapRefs = []corev1.LocalObjectReference{{Name: name}} },
			func(name, value string) client.Object {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
			},
		},
		"Secret": {
			func(s *appv1.AppSpec, name string) { s.SecretRefs = []corev1.LocalObjectReference{{Name: name}} },
			func(name, value string) client.Object {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": value}}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, cluster(t))
			o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
			object := func(name, value string) client.Object {
				obj := tc.object(name, value)
				obj.SetNamespace(u.Namespace)
				return obj
			}
			rolled := func(times int) {
				t.Helper()
				operatortest.Eventually(t, "the pods are rolled", func(c *assert.CollectT) { assert.Equal(c, 1+times, u.rollouts(t, "web")) })
				u.settled(t, "web", corev1.ConditionTrue)
			}
			used := object("settings", "1")
			require.NoError(t, u.Create(t.Context(), used))
			u.create(t, "web", func(s *appv1.AppSpec) { tc.refer(s, used.GetName()) })
			u.create(t, "bystander")
			rolled(0)

			require.NoError(t, u.Update(t.Context(), object("settings", "canary")))
			rolled(1)

			// Gone, it is missed, but the pods are left alone: new ones might not start.
			require.NoError(t, u.Delete(t.Context(), used))
			got := u.condition(t, "web", conditions.Ready, "ReferenceNotFound")
			assert.Contains(t, got.Message, name+" settings: not found")
			assert.Equal(t, 2, u.rollouts(t, "web"))

			require.NoError(t, u.Create(t.Context(), object("settings", "canary")))
			rolled(2)

			require.NoError(t, u.Create(t.Context(), object("unused", "1")))
			o.Pass(t, u, u.app("web"), u.app("bystander"))
			assert.Equal(t, 3, u.rollouts(t, "web"))
			assert.Equal(t, 1, u.rollouts(t, "bystander"))
			for what := range o.Requests.Take() {
				assert.NotContains(t, what, "configmaps")
				assert.NotContains(t, what, "secrets")
			}

			u.set(t, "web", func(s *appv1.AppSpec) { s.ConfigMapRefs, s.SecretRefs = nil, nil })
			u.settled(t, "web", corev1.ConditionTrue)
			assert.NotContains(t, operatortest.Live(t, u, u.Deployment("web")).Spec.Template.Annotations, "app.huolala.cn/configuration")
		})
	}
}

// TestReferenceComesLater checks that the pods are created although a Secret does not exist yet.
func TestReferenceComesLater(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web", func(s *appv1.AppSpec) { s.SecretRefs = []corev1.LocalObjectReference{{Name: "password"}} })
	u.condition(t, "web", conditions.Ready, "ReferenceNotFound")
	operatortest.Eventually(t, "the pods run", func(c *assert.CollectT) {
		assert.True(c, controller.Conditions.IsTrue(operatortest.Live(c, u, u.app("web")).Status.Conditions, "Available"))
	})
	require.NoError(t, u.Create(t.Context(), &corev1.Secret{ObjectMeta: u.Meta("password")}))
	u.settled(t, "web", corev1.ConditionTrue)
}
