package reconciletest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestRoleAllowsWhatTheAPIServerAllows asks the authorizer of a real API server for each right under each role.
func TestRoleAllowsWhatTheAPIServerAllows(t *testing.T) {
	cp := controlplane.New(t, controlplane.Options{})
	namespace := controlplane.Namespace(t, cp)
	c, err := client.New(cp.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)

	rules := map[string]rbacv1.PolicyRule{
		"verb":         {APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}},
		"verbs":        {APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"*"}},
		"groups":       {APIGroups: []string{"*"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
		"resources":    {APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"get", "patch"}},
		"subresource":  {APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, Verbs: []string{"get", "patch"}},
		"subresources": {APIGroups: []string{"apps"}, Resources: []string{"*/status"}, Verbs: []string{"patch"}},
		"names":        {APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"web"}, Verbs: []string{"*"}},
		"core":         {APIGroups: []string{""}, Resources: []string{"pods", "secrets"}, Verbs: []string{"create", "deletecollection", "watch"}},
	}
	var asked []reconciletest.Right
	for _, verb := range []string{"get", "list", "create", "patch", "deletecollection"} {
		for _, resource := range []string{"apps/deployments", "apps/deployments/status", "apps/statefulsets", "/pods", "/secrets/status"} {
			group, resource, _ := strings.Cut(resource, "/")
			asked = append(asked,
				reconciletest.Right{Verb: verb, Group: group, Resource: resource},
				reconciletest.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
				reconciletest.Right{Verb: verb, Group: group, Resource: resource, Namespace: "default"})
			if verb == "get" || verb == "patch" {
				asked = append(asked,
					reconciletest.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: "web"},
					reconciletest.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: "other"})
			}
		}
	}
	for name, rule := range rules {
		for _, kind := range []string{"ClusterRole", "Role"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				user := strings.ToLower(name + "-" + kind)
				file := bind(t, c, kind, namespace, user, rule)
				for _, right := range asked {
					want, err := reconciletest.Allows(file, right)
					require.NoError(t, err)
					assert.Equal(t, review(t, c, user, right), want, right)
				}
			})
		}
	}
}

// bind binds a role with one rule to a user, waits until the API server knows it, and returns the file with the role.
func bind(t *testing.T, c client.Client, kind, namespace, user string, rule rbacv1.PolicyRule) (file string) {
	t.Helper()
	named, typed := metav1.ObjectMeta{Name: user}, metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: user}
	marked := rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"marks"}, Verbs: []string{"get"}}
	granted := []rbacv1.PolicyRule{rule, marked}
	var role, binding client.Object = &rbacv1.ClusterRole{TypeMeta: typed, ObjectMeta: named, Rules: granted},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named, Subjects: subjects, RoleRef: ref}
	if kind == "Role" {
		named.Namespace = namespace
		role = &rbacv1.Role{TypeMeta: typed, ObjectMeta: named, Rules: granted}
		binding = &rbacv1.RoleBinding{ObjectMeta: named, Subjects: subjects, RoleRef: ref}
	}
	text, err := yaml.Marshal(role)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "role.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, c.Create(t.Context(), role))
	require.NoError(t, c.Create(t.Context(), binding))
	require.Eventually(t, func() bool {
		return review(t, c, user, reconciletest.Right{Verb: "get", Group: "example.com", Resource: "marks", Namespace: namespace})
	}, controlplane.Patience, 10*time.Millisecond, "the role is in force")
	return file
}

// review reports whether the API server allows a user what was asked for.
func review(t *testing.T, c client.Client, user string, right reconciletest.Right) bool {
	t.Helper()
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: subresource, Namespace: right.Namespace, Name: right.Name,
		},
	}}
	require.NoError(t, c.Create(t.Context(), r))
	return r.Status.Allowed
}
