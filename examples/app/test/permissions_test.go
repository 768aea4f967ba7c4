package test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestPermissionsSuffice runs the operator with its ServiceAccount and the generated roles.
func TestPermissionsSuffice(t *testing.T) {
	u := newUser(t, cluster(t))
	installed := operatortest.Install(t, u.User, "app")
	old := u.create(t, "old")
	createTutorialChildren(t, u, old)
	o := startOperator(t, installed.Access(t), installed.LeaderElection("app.huolala.cn")) // in all namespaces, as deployed

	settings := &corev1.ConfigMap{ObjectMeta: u.Meta("settings")}
	password := &corev1.Secret{ObjectMeta: u.Meta("password")}
	require.NoError(t, u.Create(t.Context(), settings))
	require.NoError(t, u.Create(t.Context(), password))
	u.create(t, "web", func(s *appv1.AppSpec) {
		s.ConfigMapRefs = []corev1.LocalObjectReference{{Name: "settings"}}
		s.SecretRefs = []corev1.LocalObjectReference{{Name: "password"}}
		s.MinAvailable = new(intstr.FromInt32(1))
	})
	u.settled(t, "web", corev1.ConditionTrue)
	operatortest.Change(t, u, settings, func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "1"} })
	operatortest.Eventually(t, "the pods are rolled", func(c *assert.CollectT) { assert.Equal(c, 2, u.rollouts(t, "web")) })
	operatortest.Change(t, u, password, func(s *corev1.Secret) { s.StringData = map[string]string{"a": "1"} })
	operatortest.Eventually(t, "the pods are rolled", func(c *assert.CollectT) { assert.Equal(c, 3, u.rollouts(t, "web")) })
	operatortest.Change(t, u, u.Deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
	require.NoError(t, u.Delete(t.Context(), u.Service("web")))
	operatortest.Eventually(t, "drift is repaired", func(c *assert.CollectT) {
		assert.EqualValues(c, 1, *operatortest.Live(c, u, u.Deployment("web")).Spec.Replicas)
		operatortest.Live(c, u, u.Service("web"))
	})
	u.set(t, "web", func(s *appv1.AppSpec) { s.Replicas, s.Ports, s.MinAvailable = nil, nil, nil })
	u.Gone(t, u.Service("web"), u.budget("web"))
	u.settled(t, "web", corev1.ConditionTrue)
	operatortest.Eventually(t, "the annotation is gone", func(c *assert.CollectT) {
		assert.NotContains(c, operatortest.Live(c, u, old).Annotations, "spec")
	})
	u.settled(t, old.Name, corev1.ConditionTrue)
	o.Stop() // which releases the lease
	assert.Empty(t, o.Requests.Denied())
}

// TestPlan runs the program of the operator, and its plan, with the operator's permissions.
func TestPlan(t *testing.T) {
	u := newUser(t, cluster(t))
	operatortest.Install(t, u.User, "app").AssertPlans(t, func() {
		u.create(t, "web")
		u.settled(t, "web", corev1.ConditionTrue)
	}, func() {
		operatortest.Change(t, u, u.Deployment("web"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
	})
}

// TestPermissionsAreMinimal compares the generated roles with the specified list.
func TestPermissionsAreMinimal(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	write := "create delete get list patch watch"
	operatortest.Install(t, u.User, "app").AssertMinimal(t, map[string]string{
		"apps.app.huolala.cn":            "get list patch watch",
		"apps/status.app.huolala.cn":     "patch",
		"apps/finalizers.app.huolala.cn": "update",
		"deployments.apps":               write,
		"services":                       write,
		"poddisruptionbudgets.policy":    write,
		"configmaps":                     "list watch",
		"secrets":                        "list watch",
		"events.events.k8s.io":           "create patch",
	})
}

// TestMissingPermission checks that the condition names a missing permission.
func TestMissingPermission(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	access := operatortest.Install(t, u.User, "app").Restricted(t, "restricted-"+u.Namespace, func(rule *rbacv1.PolicyRule) {
		if slices.Contains(rule.Resources, "deployments") || slices.Contains(rule.Resources, "services") {
			rule.Verbs = []string{"get", "list", "watch"}
		}
	})
	startOperator(t, access, ctrl.Options{}, u.Namespace)
	u.create(t, "web")
	for conditionType, says := range map[string]string{
		conditions.Ready: `cannot create resource "deployments" in API group "apps"`,
		"ServiceReady":   `cannot create resource "services" in API group ""`,
	} {
		operatortest.Eventually(t, "the condition names verb and resource", func(c *assert.CollectT) {
			got, _ := controller.Conditions.Get(operatortest.Live(c, u, u.app("web")).Status.Conditions, conditionType)
			assert.Equal(c, corev1.ConditionFalse, got.Status)
			assert.Contains(c, got.Message, says)
		})
	}
}

// TestEachVerbIsUsed takes away each verb of each rule, where owner references are enforced.
func TestEachVerbIsUsed(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	operatortest.Install(t, u.User, "app").AssertEachVerbUsed(t, func(of *operatortest.User) *operatortest.Lifecycle { return lifecycle(t, of) })
}

// lifecycle uses all permissions of the operator.
func lifecycle(t *testing.T, of *operatortest.User) *operatortest.Lifecycle {
	u := &user{of}
	named := func(name string) *appv1.App {
		app := u.app(name)
		app.Spec = appv1.AppSpec{
			Replicas: new(int32(1)), Image: "nginx:1.16.1", MinAvailable: new(intstr.FromInt32(1)),
			Ports: []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}},
		}
		return app
	}
	edit := func(edit func(*appv1.AppSpec)) func(context.Context) error {
		return operatortest.Edit(of, u.app("web"), func(app *appv1.App) { edit(&app.Spec) })
	}
	hidden := metav1.LabelSelector{MatchLabels: map[string]string{"app": "hidden"}}
	return &operatortest.Lifecycle{
		Options: ctrl.Options{Scheme: scheme, Cache: controller.Cache(u.Namespace)},
		Setup:   controller.SetupWithManager,
		Before: func(ctx context.Context) error {
			old := named("old")
			if err := u.Create(ctx, old); err != nil {
				return err
			}
			createTutorialChildren(t, u, old)
			return u.CreateAll(
				&appsv1.Deployment{ObjectMeta: u.Hidden(), Spec: appsv1.DeploymentSpec{Selector: &hidden, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: hidden.MatchLabels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
				}}},
				&corev1.Service{ObjectMeta: u.Hidden(), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
				&policyv1.PodDisruptionBudget{ObjectMeta: u.Hidden(), Spec: policyv1.PodDisruptionBudgetSpec{Selector: &hidden}},
			)(ctx)
		},
		Steps: []operatortest.LifecycleStep{
			{Do: u.CreateAll(named("web")), Until: u.reason("web", "ServiceReady", conditions.ReasonSucceeded)},
			{
				Do:    edit(func(s *appv1.AppSpec) { s.Replicas = new(int32(2)) }),
				Until: operatortest.Shows(of, u.Deployment("web"), func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 }),
			},
			{
				Do:    edit(func(s *appv1.AppSpec) { s.MinAvailable = new(intstr.FromInt32(2)) }),
				Until: operatortest.Shows(of, u.budget("web"), func(b *policyv1.PodDisruptionBudget) bool { return b.Spec.MinAvailable.IntVal == 2 }),
			},
			{
				Do:    edit(func(s *appv1.AppSpec) { s.Ports[0].Port = 8081 }),
				Until: operatortest.Shows(of, u.Service("web"), func(s *corev1.Service) bool { return s.Spec.Ports[0].Port == 8081 }),
			},
			{
				Do:    operatortest.Edit(of, u.Deployment("web"), func(d *appsv1.Deployment) { d.OwnerReferences[0].BlockOwnerDeletion = nil }),
				Until: operatortest.Shows(of, u.Deployment("web"), func(d *appsv1.Deployment) bool { return d.OwnerReferences[0].BlockOwnerDeletion != nil }),
			},
			{Do: edit(func(s *appv1.AppSpec) { s.Ports = nil }), Until: u.Absent(u.Service("web"))},
			{Do: edit(func(s *appv1.AppSpec) { s.MinAvailable = nil }), Until: u.Absent(u.budget("web"))},
			{Until: operatortest.Shows(of, u.app("old"), func(app *appv1.App) bool { return app.Annotations["spec"] == "" })},
			{Until: operatortest.Shows(of, u.Service("old"), func(s *corev1.Service) bool { return s.Annotations["opblocks.dev/applied"] != "" })},
			{Do: u.CreateAll(named(operatortest.Unseen)), Until: u.reason(operatortest.Unseen, "ServiceReady", "OwnedByAnother")},
			{Until: u.reason(operatortest.Unseen, conditions.Ready, "OwnedByAnother")},
			{Do: u.CreateAll(named(operatortest.Refused)), Until: u.reason(operatortest.Refused, "ServiceReady", conditions.ReasonSucceeded)},
			{Do: u.CreateAll(named(operatortest.Vanishing)), Until: u.Absent(u.app(operatortest.Vanishing))},
		},
	}
}

// reason returns a function that returns an error unless a condition has a reason.
func (u *user) reason(name, conditionType, reason string) func(context.Context) error {
	return operatortest.Shows(u.User, u.app(name), func(app *appv1.App) bool {
		c, _ := controller.Conditions.Get(app.Status.Conditions, conditionType)
		return c.Reason == reason
	})
}
