package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
)

const (
	operatorNamespace = "app-system"
	operatorAccount   = "app-controller-manager"
	operatorRole      = "app-manager-role"
)

// install applies what `make deploy` applies, but for the Deployment of an image that is not there.
func install(t *testing.T, u *user) {
	t.Helper()
	_, err := u.cp.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--kustomize", configDefault,
		"--selector", "app.kubernetes.io/component!=manager")
	require.NoError(t, err)
}

// With its ServiceAccount and the generated roles the operator can do all that it does.
func TestPermissionsSuffice(t *testing.T) {
	u := newUser(t, cluster(t))
	install(t, u)
	old := u.create(t, "old")
	createTutorialChildren(t, u, old)
	account, err := u.cp.ServiceAccountConfig(t.Context(), operatorNamespace, operatorAccount)
	require.NoError(t, err)
	o := startOperator(t, account, ctrl.Options{ // in all namespaces, as deployed
		LeaderElection: true, LeaderElectionNamespace: operatorNamespace, LeaderElectionID: "app.huolala.cn",
		LeaderElectionReleaseOnCancel: true,
	})

	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "settings"}}
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "password"}}
	require.NoError(t, u.Create(t.Context(), settings))
	require.NoError(t, u.Create(t.Context(), password))
	u.create(t, "web", func(s *appv1.AppSpec) {
		s.ConfigMapRefs = []corev1.LocalObjectReference{{Name: "settings"}}
		s.SecretRefs = []corev1.LocalObjectReference{{Name: "password"}}
		s.MinAvailable = new(intstr.FromInt32(1))
	})
	u.settled(t, "web", corev1.ConditionTrue)
	change(t, u, settings, func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "1"} })
	eventually(t, "the pods are rolled", func(c *assert.CollectT) { assert.Equal(c, 2, u.rollouts(t, "web")) })
	change(t, u, password, func(s *corev1.Secret) { s.StringData = map[string]string{"a": "1"} })
	eventually(t, "the pods are rolled", func(c *assert.CollectT) { assert.Equal(c, 3, u.rollouts(t, "web")) })
	change(t, u, u.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
	require.NoError(t, u.Delete(t.Context(), u.service("web")))
	eventually(t, "drift is repaired", func(c *assert.CollectT) {
		assert.EqualValues(c, 1, *live(c, u, u.deployment("web")).Spec.Replicas)
		live(c, u, u.service("web"))
	})
	u.set(t, "web", func(s *appv1.AppSpec) { s.Replicas, s.Ports, s.MinAvailable = nil, nil, nil })
	u.gone(t, u.service("web"), u.budget("web"))
	u.settled(t, "web", corev1.ConditionTrue)
	eventually(t, "the annotation is gone", func(c *assert.CollectT) {
		assert.NotContains(c, live(c, u, old).Annotations, "spec")
	})
	u.settled(t, old.Name, corev1.ConditionTrue)
	o.stop() // which gives the lease back
	denied := slices.DeleteFunc(slices.Clone(o.requests.Denied()), func(request string) bool {
		// In namespaces of other tests, which are being deleted, nothing can be created.
		return strings.Contains(request, "/namespaces/test") && !strings.Contains(request, "/namespaces/"+u.namespace+"/")
	})
	assert.Empty(t, denied)
}

// The roles are the specified list, and nothing more.
func TestPermissionsAreMinimal(t *testing.T) {
	u := newUser(t, cluster(t))
	install(t, u)
	var cluster rbacv1.ClusterRole
	require.NoError(t, u.Get(t.Context(), client.ObjectKey{Name: operatorRole}, &cluster))
	write := "create delete get list patch watch"
	assert.Equal(t, map[string]string{
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
	}, verbs(cluster.Rules))

	var own rbacv1.Role
	require.NoError(t, u.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: operatorRole}, &own))
	assert.Equal(t, map[string]string{"leases.coordination.k8s.io": "create get update"}, verbs(own.Rules))

	var clusterBindings rbacv1.ClusterRoleBindingList
	require.NoError(t, u.List(t.Context(), &clusterBindings))
	var bound []string
	for _, b := range clusterBindings.Items {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Name == operatorAccount }) {
			bound = append(bound, b.RoleRef.Name)
		}
	}
	assert.Equal(t, []string{operatorRole}, bound)
}

// verbs gives the verbs of each resource.
func verbs(rules []rbacv1.PolicyRule) map[string]string {
	all := map[string]string{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := strings.TrimSuffix(resource+"."+group, ".")
				all[name] = strings.TrimSpace(all[name] + " " + strings.Join(slices.Sorted(slices.Values(rule.Verbs)), " "))
			}
		}
	}
	return all
}

// A permission that is missing is named in the condition.
func TestMissingPermission(t *testing.T) {
	u := newUser(t, apiServer(t))
	install(t, u)
	user := "restricted-" + u.namespace
	var role rbacv1.ClusterRole
	require.NoError(t, u.Get(t.Context(), client.ObjectKey{Name: operatorRole}, &role))
	restricted := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "deployments") || slices.Contains(rule.Resources, "services") {
			rule.Verbs = []string{"get", "list", "watch"}
		}
		restricted.Rules = append(restricted.Rules, rule)
	}
	require.NoError(t, u.Create(t.Context(), restricted))
	require.NoError(t, u.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
	startOperator(t, u.cp.ConfigFor(user), ctrl.Options{}, u.namespace)
	u.create(t, "web")
	for conditionType, says := range map[string]string{
		conditions.Ready: `cannot create resource "deployments" in API group "apps"`,
		"ServiceReady":   `cannot create resource "services" in API group ""`,
	} {
		eventually(t, "the condition names verb and resource", func(c *assert.CollectT) {
			got, _ := controller.Conditions.Get(live(c, u, u.app("web")).Status.Conditions, conditionType)
			assert.Equal(c, corev1.ConditionFalse, got.Status)
			assert.Contains(c, got.Message, says)
		})
	}
}
