package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

var (
	// No controller of Kubernetes does anything for DatabaseUsers, so they run only where a test deletes a namespace.
	cluster, apiServer = operatortest.ControlPlanes("../config/crd/bases")

	scheme = operatortest.NewScheme(userv1alpha1.AddToScheme)
)

// tenant is the access of the test itself to a namespace, as an administrator. Its names in databases are unique.
type tenant struct {
	*operatortest.User
	suffix string
}

func newTenant(t testing.TB) *tenant {
	t.Helper()
	return newTenantOn(t, apiServer(t))
}

func newTenantOn(t testing.TB, cp *controlplane.ControlPlane) *tenant {
	t.Helper()
	u := operatortest.NewUser(t, cp, scheme)
	return &tenant{User: u, suffix: u.Namespace[strings.LastIndex(u.Namespace, "-"):]}
}

// unique adds the tenant's suffix to the name of a user, a database or a target.
func (n *tenant) unique(name string) string { return name + n.suffix }

func (n *tenant) user(name string) *userv1alpha1.DatabaseUser {
	return &userv1alpha1.DatabaseUser{ObjectMeta: n.Meta(name)}
}

// users returns empty DatabaseUsers of some names.
func (n *tenant) users(names ...string) []client.Object {
	all := make([]client.Object, len(names))
	for i, name := range names {
		all[i] = n.user(name)
	}
	return all
}

func (n *tenant) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: n.Meta(name)}
}

// create creates a DatabaseUser for the target shop, with the password in the Secret of the same name.
func (n *tenant) create(t testing.TB, name string, edits ...func(*userv1alpha1.DatabaseUser)) *userv1alpha1.DatabaseUser {
	t.Helper()
	u := n.user(name)
	u.Labels = map[string]string{userv1alpha1.TargetLabel: n.unique("shop")}
	u.Spec.User = n.unique(name)
	u.Spec.Password = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "password"}
	for _, edit := range edits {
		edit(u)
	}
	require.NoError(t, n.Create(t.Context(), u))
	return u
}

// setPassword creates or updates a Secret.
func (n *tenant) setPassword(t testing.TB, name, password string) {
	t.Helper()
	s := n.secret(name)
	s.Data = map[string][]byte{"password": []byte(password)}
	err := n.Create(t.Context(), s)
	if err != nil {
		err = n.Update(t.Context(), s)
	}
	require.NoError(t, err)
}

func (n *tenant) set(t *testing.T, name string, edit func(*userv1alpha1.DatabaseUserSpec)) {
	t.Helper()
	operatortest.Change(t, n, n.user(name), func(u *userv1alpha1.DatabaseUser) { edit(&u.Spec) })
}

func (n *tenant) relabel(t *testing.T, name, target string) {
	t.Helper()
	operatortest.Change(t, n, n.user(name), func(u *userv1alpha1.DatabaseUser) {
		u.Labels = map[string]string{userv1alpha1.TargetLabel: target}
		if target == "" {
			u.Labels = nil
		}
	})
}

func ready(u *userv1alpha1.DatabaseUser) userv1alpha1.Condition {
	for _, c := range u.Status.Conditions {
		if c.Type == conditions.Ready {
			return c
		}
	}
	return userv1alpha1.Condition{}
}

// settled waits until the operator has observed the present spec and Ready has the given reason. It returns the object.
func (n *tenant) settled(t *testing.T, name, reason string) *userv1alpha1.DatabaseUser {
	t.Helper()
	u := n.user(name)
	operatortest.Eventually(t, name+" becomes "+reason, func(c *assert.CollectT) {
		got := ready(operatortest.Live(c, n, u))
		assert.Equal(c, u.Generation, u.Status.ObservedGeneration)
		assert.Equal(c, reason, got.Reason, got.Message)
	})
	return u
}

func (n *tenant) provisioned(t *testing.T, name string) *userv1alpha1.DatabaseUser {
	t.Helper()
	return n.settled(t, name, "ProvisionSucceeded")
}
