package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
)

const (
	operatorNamespace = "memcached-system"
	operatorAccount   = "memcached-controller-manager"
	operatorRole      = "memcached-manager-role"
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
	old := u.create(t, "old", 1)
	require.NoError(t, u.Create(t.Context(), tutorialDeployment(u, old), client.FieldOwner("manager")))
	account, err := u.cp.ServiceAccountConfig(t.Context(), operatorNamespace, operatorAccount)
	require.NoError(t, err)
	o := startOperator(t, account, ctrl.Options{ // in all namespaces, as deployed
		LeaderElection: true, LeaderElectionNamespace: operatorNamespace, LeaderElectionID: "memcached.cache.example.com",
		LeaderElectionReleaseOnCancel: true,
	})

	m := u.create(t, "cache", 1)
	u.settled(t, m.Name, metav1.ConditionTrue)
	change(t, u, m, func(m *cachev1alpha1.Memcached) { m.Spec.Size = 2 })
	u.settled(t, m.Name, metav1.ConditionTrue)
	change(t, u, u.deployment(m.Name), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
	require.NoError(t, u.Delete(t.Context(), u.service(m.Name)))
	eventually(t, "drift is repaired", func(c *assert.CollectT) {
		d := u.deployment(m.Name)
		require.NoError(c, u.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		assert.EqualValues(c, 2, *d.Spec.Replicas)
		assert.NoError(c, u.Get(t.Context(), client.ObjectKeyFromObject(m), u.service(m.Name)))
	})
	u.settled(t, old.Name, metav1.ConditionTrue)
	o.stop() // which gives the lease back
	assert.Empty(t, o.requests.Denied())
}

// The roles are the specified list, and nothing more.
func TestPermissionsAreMinimal(t *testing.T) {
	u := newUser(t, cluster(t))
	install(t, u)
	var cluster rbacv1.ClusterRole
	require.NoError(t, u.Get(t.Context(), client.ObjectKey{Name: operatorRole}, &cluster))
	write := "create delete get list patch update watch"
	assert.Equal(t, map[string]string{
		"memcacheds.cache.example.com":            "get list watch",
		"memcacheds/status.cache.example.com":     "patch update",
		"memcacheds/finalizers.cache.example.com": "update",
		"deployments.apps":                        write,
		"services":                                write,
		"pods":                                    "get list watch",
		"events":                                  "create patch",
		"events.events.k8s.io":                    "create patch",
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
		if slices.Contains(rule.Resources, "deployments") {
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
	u.create(t, "cache", 1)
	eventually(t, "the condition names verb and resource", func(c *assert.CollectT) {
		m := u.memcached("cache", 0)
		require.NoError(c, u.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		got, _ := conditions.Get(m.Status.Conditions, conditions.Ready)
		assert.Equal(c, metav1.ConditionFalse, got.Status)
		assert.Contains(c, got.Message, `cannot create resource "deployments" in API group "apps"`)
	})
}
