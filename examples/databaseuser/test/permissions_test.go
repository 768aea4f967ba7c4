package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts/accountstest"
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

// TestLifecycle runs the operator with each option of the manager.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	operatortest.EachManagerOption(t, func(t *testing.T, options ctrl.Options) {
		t.Parallel()
		n, db := newTenant(t), open(t, sharedServer(t))
		n.live(t, db, n.operate(t, db.Server, func(s *settings) { s.options = n.ElectLeader(options) }))
	})
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

// TestPlan runs the plan of the program with the operator's permissions. It says which accounts are created and dropped, and the
// database is not asked.
func TestPlan(t *testing.T) {
	t.Parallel()
	n, credentials := newTenant(t), t.TempDir()
	for _, file := range []string{"username", "password"} {
		require.NoError(t, os.WriteFile(filepath.Join(credentials, file), []byte("admin"), 0o600))
	}
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	moved := n.create(t, "bob", func(u *userv1alpha1.DatabaseUser) { u.Labels[userv1alpha1.TargetLabel] = "elsewhere" })
	moved.Status = userv1alpha1.DatabaseUserStatus{User: moved.Spec.User, Hosts: []string{"%"}, Target: n.unique("shop"), PasswordVersion: "1"}
	require.NoError(t, n.Status().Update(t.Context(), moved))
	exit, out := operatortest.Install(t, n.User, "databaseuser").Build(t).Plan(t, "text", "-namespaces="+n.Namespace,
		"-target="+n.unique("shop"), "-database-address=127.0.0.1:1", "-database-credentials="+credentials)
	assert.Equal(t, 3, exit, "something would be changed")
	assert.Contains(t, out, "1 × account is created")
	assert.Contains(t, out, "1 × account is deleted: it is deleted outside of the cluster, with what it holds")
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
		"databaseusers.mygroup.handsomeguy.cn":        "get list patch watch",
		"databaseusers/status.mygroup.handsomeguy.cn": "patch",
		"secrets":              "get list watch",
		"events.events.k8s.io": "create patch",
	})
}

// TestEachVerbIsUsed takes away each verb of each rule. The accounts are in memory.
func TestEachVerbIsUsed(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	operatortest.Install(t, n.User, "databaseuser").AssertEachVerbUsed(t, lifecycle)
}

// lifecycle uses all permissions of the operator.
func lifecycle(u *operatortest.User) *operatortest.Lifecycle {
	meta := func(name string) metav1.ObjectMeta {
		meta := u.Meta(name)
		meta.Labels = map[string]string{userv1alpha1.TargetLabel: "shop"}
		return meta
	}
	named := func(name string) *userv1alpha1.DatabaseUser {
		return &userv1alpha1.DatabaseUser{ObjectMeta: meta(name), Spec: spec{
			User:     name,
			Password: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}, Key: "password"},
		}}
	}
	provisioned := func(name string) func(context.Context) error {
		return operatortest.Shows(u, named(name), func(u *userv1alpha1.DatabaseUser) bool { return ready(u).Reason == "ProvisionSucceeded" })
	}
	var tries atomic.Int32 // how many lookups will fail
	database := &accountstest.Database{Fail: func(method string) error {
		if method != "Lookup" {
			return nil
		}
		if n := tries.Add(-1); n >= 0 {
			return fmt.Errorf("%d more will fail", n)
		}
		return nil
	}}
	operator := &controller.Operator{Database: database, Target: "shop", Resync: time.Hour}
	return &operatortest.Lifecycle{
		Options: ctrl.Options{Scheme: scheme, Cache: controller.Cache(u.Namespace)},
		Setup:   operator.SetupWithManager,
		Before: func(ctx context.Context) error {
			former := named("former") // an object of a former process, which is being deleted
			former.Finalizers = []string{controller.Finalizer}
			secret := &corev1.Secret{ObjectMeta: u.Meta("password"), StringData: map[string]string{"password": "swordfish"}}
			if err := u.CreateAll(secret, former)(ctx); err != nil {
				return err
			}
			former.Status.User, former.Status.Hosts, former.Status.Target, former.Status.PasswordVersion = "former", []string{"%"}, "shop", "1"
			if err := u.Status().Update(ctx, former); err != nil {
				return err
			}
			return u.Delete(ctx, former)
		},
		Steps: []operatortest.LifecycleStep{
			{Until: u.Absent(named("former"))}, // the process has not written this object, so it reads the object before it drops the account
			{
				Do: func(ctx context.Context) error {
					tries.Store(3)
					return u.CreateAll(named(operatortest.Refused))(ctx)
				},
				Until: provisioned(operatortest.Refused),
			},
			{Do: u.CreateAll(named("alice")), Until: provisioned("alice")},
			{
				Do:    func(ctx context.Context) error { return u.Delete(ctx, named("alice")) },
				Until: u.Absent(named("alice")),
			},
		},
	}
}
