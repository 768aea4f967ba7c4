package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// live uses all permissions of the operator.
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
	operatortest.Eventually(t, "the password is rotated", func(c *assert.CollectT) { assert.NoError(c, db.login(n.unique("alice"), "marlin")) })
	n.provisioned(t, "alice")
	n.create(t, "abandoned")
	n.setPassword(t, "abandoned", "swordfish")
	n.provisioned(t, "abandoned")
	operatortest.Change(t, n, n.user("abandoned"), func(u *userv1alpha1.DatabaseUser) {
		u.Annotations = map[string]string{controller.AbandonAnnotation: "true"}
	})
	n.delete(t, "alice", "abandoned")
	n.Gone(t, n.user("alice"), n.user("abandoned"))
	o.Stop() // which releases the lease
	assert.Empty(t, o.Requests.Denied())
}

// TestPermissionsSuffice runs the operator with its ServiceAccount and the generated roles, in all namespaces.
func TestPermissionsSuffice(t *testing.T) {
	n, db := newTenant(t), open(t, sharedServer(t))
	installed := operatortest.Install(t, n.User, "databaseuser")
	n.live(t, db, n.operate(t, db.Server, func(s *settings) {
		s.access, s.cache = installed.Access(t), nil
		s.options = installed.LeaderElection("databaseuser")
	}))
}

// TestPermissionsInNamespaces runs the operator in some namespaces only: it needs the same rules there, and none elsewhere.
func TestPermissionsInNamespaces(t *testing.T) {
	t.Parallel()
	n, m, db := newTenant(t), newTenant(t), open(t, sharedServer(t))
	rules := operatortest.Install(t, n.User, "databaseuser").Rules(t)
	name := "operator" + n.suffix
	for _, in := range []*tenant{n, m} {
		meta := in.Meta(name)
		require.NoError(t, n.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
		require.NoError(t, n.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		}))
	}
	o := n.operate(t, db.Server, func(s *settings) {
		s.access, s.cache = n.ControlPlane.ConfigFor(name), []string{n.Namespace, m.Namespace}
	})
	m.create(t, "bob", func(u *userv1alpha1.DatabaseUser) { u.Labels["target"] = n.unique("shop") })
	m.setPassword(t, "bob", "swordfish")
	m.provisioned(t, "bob")
	n.live(t, db, o)
}

// TestPermissionsAreMinimal compares the generated roles with the specified list.
func TestPermissionsAreMinimal(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	operatortest.Install(t, n.User, "databaseuser").AssertMinimal(t, map[string]string{
		"databaseusers.mygroup.handsomeguy.cn":            "get list patch watch",
		"databaseusers/status.mygroup.handsomeguy.cn":     "patch",
		"databaseusers/finalizers.mygroup.handsomeguy.cn": "update",
		"secrets":              "get list watch",
		"events":               "create patch",
		"events.events.k8s.io": "create patch",
	})
}
