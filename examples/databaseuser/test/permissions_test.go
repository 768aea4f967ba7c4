package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
)

const (
	configDefault     = "../config/default"
	operatorNamespace = "databaseuser-system"
	operatorAccount   = "databaseuser-controller-manager"
	operatorRole      = "databaseuser-manager-role"
)

// install applies what `make deploy` applies, but for the Deployment of an image that is not there.
func (n *tenant) install(t *testing.T) (account *rest.Config, role rbacv1.ClusterRole) {
	t.Helper()
	_, err := n.cp.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--kustomize", configDefault,
		"--selector", "app.kubernetes.io/component!=manager")
	require.NoError(t, err)
	require.NoError(t, n.Get(t.Context(), client.ObjectKey{Name: operatorRole}, &role))
	account, err = n.cp.ServiceAccountConfig(t.Context(), operatorNamespace, operatorAccount)
	require.NoError(t, err)
	return account, role
}

// live is a life in which the operator needs all that it may do.
func (n *tenant) live(t *testing.T, db *database, o *operator) {
	t.Helper()
	n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Grants = []userv1alpha1.Grant{{Database: "missing", Table: "missing", Privileges: []privilege{"SELECT"}}}
	})
	n.settled(t, "alice", "SecretNotFound")
	n.setPassword(t, "alice", "swordfish")
	n.settled(t, "alice", "ProvisionFailed")
	n.set(t, "alice", func(s *spec) { s.Grants = nil })
	n.provisioned(t, "alice")
	n.setPassword(t, "alice", "marlin")
	eventually(t, "the password is rotated", func(c *assert.CollectT) { assert.NoError(c, db.login(n.unique("alice"), "marlin")) })
	n.provisioned(t, "alice")
	n.create(t, "abandoned")
	n.setPassword(t, "abandoned", "swordfish")
	n.provisioned(t, "abandoned")
	change(t, n, n.user("abandoned"), func(u *userv1alpha1.DatabaseUser) {
		u.Annotations = map[string]string{controller.AbandonAnnotation: "true"}
	})
	n.delete(t, "alice", "abandoned")
	n.gone(t, n.user("alice"), n.user("abandoned"))
	o.stop() // which gives the lease back
	denied := slices.DeleteFunc(slices.Clone(o.requests.Denied()), func(request string) bool {
		return strings.Contains(request, "/namespaces/test") && !strings.Contains(request, "/namespaces/"+n.namespace+"/") // which are being deleted
	})
	assert.Empty(t, denied)
}

// With its ServiceAccount and the generated roles the operator can do all that it does, in all namespaces.
func TestPermissionsSuffice(t *testing.T) {
	n, db := newTenant(t), open(t, sharedServer(t))
	account, _ := n.install(t)
	n.live(t, db, n.operate(t, db.Server, func(s *settings) {
		s.access, s.cache = account, nil
		s.options = ctrl.Options{LeaderElection: true, LeaderElectionNamespace: operatorNamespace, LeaderElectionID: "databaseuser", LeaderElectionReleaseOnCancel: true}
	}))
}

// Where it works in some namespaces only, it needs the same rules there and nothing elsewhere.
func TestPermissionsInNamespaces(t *testing.T) {
	t.Parallel()
	n, m, db := newTenant(t), newTenant(t), open(t, sharedServer(t))
	_, role := n.install(t)
	name := "operator" + n.suffix
	for _, in := range []*tenant{n, m} {
		meta := metav1.ObjectMeta{Namespace: in.namespace, Name: name}
		require.NoError(t, n.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: role.Rules}))
		require.NoError(t, n.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		}))
	}
	o := n.operate(t, db.Server, func(s *settings) {
		s.access, s.cache = n.cp.ConfigFor(name), []string{n.namespace, m.namespace}
	})
	m.create(t, "bob", func(u *userv1alpha1.DatabaseUser) { u.Labels["target"] = n.unique("shop") })
	m.setPassword(t, "bob", "swordfish")
	m.provisioned(t, "bob")
	n.live(t, db, o)
}

// The roles are the specified list, and nothing more.
func TestPermissionsAreMinimal(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	_, role := n.install(t)
	assert.Equal(t, map[string]string{
		"databaseusers.mygroup.handsomeguy.cn":            "get list patch watch",
		"databaseusers/status.mygroup.handsomeguy.cn":     "patch",
		"databaseusers/finalizers.mygroup.handsomeguy.cn": "update",
		"secrets":              "get list watch",
		"events":               "create patch",
		"events.events.k8s.io": "create patch",
	}, verbs(role.Rules))
	var own rbacv1.Role
	require.NoError(t, n.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: operatorRole}, &own))
	assert.Equal(t, map[string]string{"leases.coordination.k8s.io": "create get update"}, verbs(own.Rules))
	var bindings rbacv1.ClusterRoleBindingList
	require.NoError(t, n.List(t.Context(), &bindings))
	var bound []string
	for _, b := range bindings.Items {
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
