package test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestPermissionsSuffice runs the operator with its ServiceAccount and the generated roles.
func TestPermissionsSuffice(t *testing.T) {
	u := newUser(t, cluster(t))
	installed := operatortest.Install(t, u.User, "eru")
	former := u.eru("former")
	former.Spec = eruv1.EruSpec{DeploymentName: "former", Enabled: true, Schedule: "@every 3s"}
	former.Annotations = former.SpecAnnotations()
	require.NoError(t, u.Create(t.Context(), former))
	u.deploy(t, "former", true)
	o := startOperator(t, realTime, installed.Access(t), installed.LeaderElection("eru.mtsre.meitu.com")) // in all namespaces, as deployed
	d := u.deploy(t, "web", true)
	u.becomes(t, "web", created)
	u.set(t, "web", func(s *eruv1.EruSpec) { s.Enabled, s.Schedule = true, "@every 3s" })
	u.becomes(t, "web", restarted)
	u.becomes(t, "former", restarted)
	assert.Equal(t, eruv1.CreatedBy, operatortest.Live(t, u, former).Labels[eruv1.LabelCreatedBy])
	u.create(t, "by-hand", enabled("web", "@daily"))
	u.becomes(t, "by-hand", scheduled)
	operatortest.Eventually(t, "events are written", func(c *assert.CollectT) {
		assert.Contains(c, u.events(c, "Deployment", "web"), "Restarted")
	})
	require.NoError(t, u.Delete(t.Context(), d))
	u.Gone(t, u.eru("web"), u.eru("by-hand"))
	o.Stop() // which releases the lease
	for _, request := range o.Requests.Denied() {
		assert.NotContains(t, request, u.Namespace) // namespaces of other tests are being deleted: nothing can be created in them
	}
}

// TestPermissionsAreMinimal compares the generated roles with the specified list.
func TestPermissionsAreMinimal(t *testing.T) {
	u := newUser(t, cluster(t))
	operatortest.Install(t, u.User, "eru").AssertMinimal(t, map[string]string{
		"erus.mtsre.meitu.com":            "create delete get list patch watch",
		"erus/status.mtsre.meitu.com":     "patch",
		"erus/finalizers.mtsre.meitu.com": "update",
		"deployments.apps":                "get list patch watch",
		"events":                          "create patch",
		"events.events.k8s.io":            "create patch",
	})
}

// TestMissingPermission checks that a missing permission is named in the condition, or in an event if there is no Eru.
func TestMissingPermission(t *testing.T) {
	u := newUser(t, apiServer(t))
	access := operatortest.Install(t, u.User, "eru").Restricted(t, "restricted-"+u.Namespace, func(rule *rbacv1.PolicyRule) {
		if slices.Contains(rule.Resources, "deployments") || slices.Contains(rule.Resources, "erus") {
			rule.Verbs = []string{"get", "list", "watch"}
		}
	})
	u.rolledOut(t, "web", false)
	r, _ := stepped()
	startOperator(t, r, access, ctrl.Options{}, u.Namespace)
	u.create(t, "web", enabled("web", "0 4 * * *"))
	eru := u.becomes(t, "web", ": Valid false Forbidden")
	assert.Contains(t, eru.LastCondition().Message, `cannot patch resource "erus" in API group "mtsre.meitu.com"`)

	u.rolledOut(t, "asking", true)
	operatortest.Eventually(t, "an event tells", func(c *assert.CollectT) {
		assert.Contains(c, u.events(c, "Deployment", "asking"), "CreateEruFailed")
	})
}
