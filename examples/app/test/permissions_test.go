package test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestPermissionsSuffice runs the operator with its ServiceAccount and the generated roles.
func TestPermissionsSuffice(t *testing.T) {
	u := newUser(t, cluster(t))
	installed := operatortest.Install(t, u.User, "app")
	old := u.create(t, "old")
	createTutorialChildren(t, u, old)
	o := startOperator(t, installed.Access(t), installed.LeaderElection("app.huolala.cn")) // in all namespaces, as deployed

	settings := &corev1.ConfigMap{ObjectMeta: u.Meta("settings")}
	password := &corev1.Secret{ObjectMeta: u.Meta("password")}
	require.NoError(t, u.Create(t.Context(), settings))
	require.NoError(t, u.Create(t.Context(), password))
	u.create(t, "web", func(s *appv1.AppSpec) {
		s.ConfigMapRefs = []corev1.LocalObjectReference{{Name: "settings"}}
		s.SecretRefs = []corev1.LocalObjectReference{{Name: "password"}}
		s.MinAvailable = new(intstr.FromInt32(1))
	})
	u.settled(t, "web", corev1.ConditionTrue)
	operatortest.Change(t, u, settings, func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "1"} })
	operatortest.Eventually(t, "the pods are rolled", func(c *assert.CollectT) { assert.Equal(c, 2, u.rollouts(t, "web")) })
	operatortest.Change(t, u, password, func(s *corev1.Secret) { s.StringData = map[string]string{"a": "1"} })
	operatortest.Eventually(t, "the pods are rolled", func(c *assert.CollectT) { assert.Equal(c, 3, u.rollouts(t, "web")) })
	operatortest.Change(t, u, u.Deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
	require.NoError(t, u.Delete(t.Context(), u.Service("web")))
	operatortest.Eventually(t, "drift is repaired", func(c *assert.CollectT) {
		assert.EqualValues(c, 1, *operatortest.Live(c, u, u.Deployment("web")).Spec.Replicas)
		operatortest.Live(c, u, u.Service("web"))
	})
	u.set(t, "web", func(s *appv1.AppSpec) { s.Replicas, s.Ports, s.MinAvailable = nil, nil, nil })
	u.Gone(t, u.Service("web"), u.budget("web"))
	u.settled(t, "web", corev1.ConditionTrue)
	operatortest.Eventually(t, "the annotation is gone", func(c *assert.CollectT) {
		assert.NotContains(c, operatortest.Live(c, u, old).Annotations, "spec")
	})
	u.settled(t, old.Name, corev1.ConditionTrue)
	o.Stop() // which releases the lease
	assert.Empty(t, o.Requests.Denied())
}

// TestPermissionsAreMinimal compares the generated roles with the specified list.
func TestPermissionsAreMinimal(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	write := "create delete get list patch watch"
	operatortest.Install(t, u.User, "app").AssertMinimal(t, map[string]string{
		"apps.app.huolala.cn":            "get list patch watch",
		"apps/status.app.huolala.cn":     "patch",
		"apps/finalizers.app.huolala.cn": "update",
		"deployments.apps":               write,
		"services":                       write,
		"poddisruptionbudgets.policy":    write,
		"configmaps":                     "list watch",
		"secrets":                        "list watch",
		"events":                         "create patch",
		"events.events.k8s.io":           "create patch",
	})
}

// TestMissingPermission checks that the condition names a missing permission.
func TestMissingPermission(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	access := operatortest.Install(t, u.User, "app").Restricted(t, "restricted-"+u.Namespace, func(rule *rbacv1.PolicyRule) {
		if slices.Contains(rule.Resources, "deployments") || slices.Contains(rule.Resources, "services") {
			rule.Verbs = []string{"get", "list", "watch"}
		}
	})
	startOperator(t, access, ctrl.Options{}, u.Namespace)
	u.create(t, "web")
	for conditionType, says := range map[string]string{
		conditions.Ready: `cannot create resource "deployments" in API group "apps"`,
		"ServiceReady":   `cannot create resource "services" in API group ""`,
	} {
		operatortest.Eventually(t, "the condition names verb and resource", func(c *assert.CollectT) {
			got, _ := controller.Conditions.Get(operatortest.Live(c, u, u.app("web")).Status.Conditions, conditionType)
			assert.Equal(c, corev1.ConditionFalse, got.Status)
			assert.Contains(c, got.Message, says)
		})
	}
}
