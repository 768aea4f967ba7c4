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
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/examples/internal/launch"
)

// Installation is what an example's operator has in a cluster: its ServiceAccount and its roles.
type Installation struct {
	*User
	// Name of the example, which the names of its objects begin with.
	Name string
}

// Install applies what `make deploy` applies for an example, except the Deployment, whose image does not exist, and the conversion of a CRD, for which
// nothing runs.
func Install(t testing.TB, u *User, name string) *Installation {
	t.Helper()
	_, err := u.ControlPlane.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "--kustomize", launch.Manifests("../config"),
		"--selector", "app.kubernetes.io/component!=manager")
	require.NoError(t, err)
	return &Installation{u, name}
}

// SystemNamespace returns the namespace of the operator.
func (i *Installation) SystemNamespace() string { return i.Name + "-system" }

func (i *Installation) account() string { return i.Name + "-controller-manager" }

func (i *Installation) role() string { return i.Name + "-manager-role" }

func (i *Installation) metricsRole() string { return i.Name + "-metrics-auth-role" }

// LeaderElection returns manager options with which the operator elects a leader, as it does when it is deployed.
func (i *Installation) LeaderElection(lease string) ctrl.Options {
	return electLeader(i.SystemNamespace(), lease)
}

// Access returns a config with the permissions of the operator's ServiceAccount.
func (i *Installation) Access(t testing.TB) *rest.Config {
	t.Helper()
	access, err := i.ControlPlane.ServiceAccountConfig(t.Context(), i.SystemNamespace(), i.account())
	require.NoError(t, err)
	return access
}

// Rules returns the rules of the operator's ClusterRole.
func (i *Installation) Rules(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	return Live(t, i, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: i.role()}}).Rules
}

// ownRules returns the rules of the operator's Role in its own namespace.
func (i *Installation) ownRules(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	return Live(t, i, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: i.SystemNamespace(), Name: i.role()}}).Rules
}

// AssertMinimal asserts that the operator has exactly some permissions, given as sorted verbs by resource, those to elect a
// leader in its own namespace, and those to find out who may read its metrics.
func (i *Installation) AssertMinimal(t testing.TB, want map[string]string) {
	t.Helper()
	assert.Equal(t, want, verbs(i.Rules(t)))
	assert.Equal(t, map[string]string{"leases.coordination.k8s.io": "create get update", "events": "create"}, verbs(i.ownRules(t)))

	var bindings rbacv1.ClusterRoleBindingList
	require.NoError(t, i.List(t.Context(), &bindings))
	var bound []string
	for _, b := range bindings.Items {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Name == i.account() }) {
			bound = append(bound, b.RoleRef.Name)
		}
	}
	assert.Equal(t, []string{i.role(), i.metricsRole()}, bound)
	review := Live(t, i, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: i.metricsRole()}})
	assert.Equal(t, map[string]string{"tokenreviews.authentication.k8s.io": "create", "subjectaccessreviews.authorization.k8s.io": "create"}, verbs(review.Rules))
}

// Restricted returns a config for a user of a name who has the operator's rules, edited, in all namespaces.
func (i *Installation) Restricted(t testing.TB, user string, edit func(*rbacv1.PolicyRule)) *rest.Config {
	t.Helper()
	rules := i.Rules(t)
	for r := range rules {
		edit(&rules[r])
	}
	return i.grant(t, user, rules, permission{rules[0].Verbs[0], rules[0].APIGroups[0], rules[0].Resources[0]})
}

// verbs returns the sorted verbs by resource.
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
