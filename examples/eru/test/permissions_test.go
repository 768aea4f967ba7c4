package test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/ownedresources/workload"
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
	u.restarts(t, "web", "")
	u.restarts(t, "former", "")
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

// TestPlan runs the plan of the program with the operator's permissions. The operator has steps of its own alone, which the plan names.
func TestPlan(t *testing.T) {
	u := newUser(t, cluster(t))
	exit, out := operatortest.Install(t, u.User, "eru").Build(t).Plan(t, "text", "-namespaces="+u.Namespace)
	assert.Zero(t, exit)
	assert.Contains(t, out, "is not in the plan, since they have no method Preview")
}

// TestPermissionsAreMinimal compares the generated roles with the specified list.
func TestPermissionsAreMinimal(t *testing.T) {
	u := newUser(t, cluster(t))
	operatortest.Install(t, u.User, "eru").AssertMinimal(t, map[string]string{
		"erus.mtsre.meitu.com":        "create get list patch watch",
		"erus/status.mtsre.meitu.com": "patch",
		"deployments.apps":            "list patch watch",
		"events.events.k8s.io":        "create patch",
	})
}

// TestMissingPermission checks that a missing permission is named in the condition, or in an event if no Eru exists.
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

// TestEachVerbIsUsed takes away each verb of each rule.
func TestEachVerbIsUsed(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	operatortest.Install(t, u.User, "eru").AssertEachVerbUsed(t, func(of *operatortest.User) *operatortest.Lifecycle { return lifecycle(t, of) })
}

// lifecycle uses all permissions of the operator.
func lifecycle(t *testing.T, of *operatortest.User) *operatortest.Lifecycle {
	u := &user{of}
	becomes := func(name, want string) func(context.Context) error {
		return operatortest.Shows(of, u.eru(name), func(eru *eruv1.Eru) bool { return state(eru) == want })
	}
	vanishing := u.eru(operatortest.Vanishing)
	vanishing.Spec = enabled("web", "@daily")
	return &operatortest.Lifecycle{
		Options: ctrl.Options{Scheme: scheme, Cache: controller.Cache(u.Namespace)},
		Setup:   func(mgr ctrl.Manager) error { return controller.SetupWithManager(mgr, realTime) },
		Before: func(context.Context) error {
			u.rolledOut(t, "web", true)
			u.rolledOut(t, operatortest.Refused, true)
			return nil
		},
		Steps: []operatortest.LifecycleStep{
			{Until: becomes("web", created)},
			{Until: becomes(operatortest.Refused, created)},
			{
				Do: operatortest.Edit(of, u.eru("web"), func(eru *eruv1.Eru) { eru.Spec = enabled("web", "@every 1s") }),
				Until: operatortest.Shows(of, u.Deployment("web"), func(d *appsv1.Deployment) bool {
					return d.Spec.Template.Annotations[workload.AnnotationRestartedAt] != ""
				}),
			},
			{Do: u.CreateAll(vanishing), Until: u.Absent(u.eru(operatortest.Vanishing))},
		},
	}
}
