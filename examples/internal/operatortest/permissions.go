package operatortest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Installation is an example as it is deployed: its ServiceAccount and its roles.
type Installation struct {
	*User
	// Name is the example's, as in the names of what is deployed.
	Name string
}

// Install applies what `make deploy` applies of an example, but for the Deployment of an image that is not there.
func Install(t testing.TB, u *User, name string) *Installation {
	t.Helper()
	_, err := u.ControlPlane.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--kustomize", "../config/default",
		"--selector", "app.kubernetes.io/component!=manager")
	require.NoError(t, err)
	return &Installation{u, name}
}

// Home is the operator's own namespace.
func (i *Installation) Home() string { return i.Name + "-system" }

func (i *Installation) account() string { return i.Name + "-controller-manager" }

func (i *Installation) role() string { return i.Name + "-manager-role" }

// Access is what the operator's ServiceAccount has.
func (i *Installation) Access(t testing.TB) *rest.Config {
	t.Helper()
	access, err := i.ControlPlane.ServiceAccountConfig(t.Context(), i.Home(), i.account())
	require.NoError(t, err)
	return access
}

// Rules gives those of the operator's ClusterRole.
func (i *Installation) Rules(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	return Live(t, i, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: i.role()}}).Rules
}

// AssertMinimal asserts that the operator may do what is wanted, the verbs in the order of the alphabet by resource, and
// nothing more but hold a lease in its own namespace.
func (i *Installation) AssertMinimal(t testing.TB, want map[string]string) {
	t.Helper()
	assert.Equal(t, want, verbs(i.Rules(t)))
	own := Live(t, i, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: i.Home(), Name: i.role()}})
	assert.Equal(t, map[string]string{"leases.coordination.k8s.io": "create get update"}, verbs(own.Rules))

	var bindings rbacv1.ClusterRoleBindingList
	require.NoError(t, i.List(t.Context(), &bindings))
	var bound []string
	for _, b := range bindings.Items {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Name == i.account() }) {
			bound = append(bound, b.RoleRef.Name)
		}
	}
	assert.Equal(t, []string{i.role()}, bound)
}

// Restricted gives the access of a user of that name who has the operator's rules as they are edited, in all namespaces.
func (i *Installation) Restricted(t testing.TB, user string, edit func(*rbacv1.PolicyRule)) *rest.Config {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: i.Rules(t)}
	for r := range role.Rules {
		edit(&role.Rules[r])
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	for _, obj := range []client.Object{role, binding} {
		require.NoError(t, i.Create(t.Context(), obj))
	}
	return i.ControlPlane.ConfigFor(user)
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
