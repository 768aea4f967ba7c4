package test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
)

// TestPermissionsSuffice runs the operator with its ServiceAccount and the generated roles.
func TestPermissionsSuffice(t *testing.T) {
	u := newUser(t, cluster(t))
	installed := operatortest.Install(t, u.User, "memcached")
	old := u.create(t, "old", 1)
	require.NoError(t, u.Create(t.Context(), tutorialDeployment(u, old), client.FieldOwner("manager")))
	o := startOperator(t, installed.Access(t), installed.LeaderElection("memcached.cache.example.com")) // in all namespaces, as deployed

	m := u.create(t, "cache", 1)
	u.settled(t, m.Name, metav1.ConditionTrue)
	operatortest.Change(t, u, m, func(m *cachev1.Memcached) { m.Spec.Size = 2 })
	u.settled(t, m.Name, metav1.ConditionTrue)
	operatortest.Change(t, u, u.Deployment(m.Name), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
	require.NoError(t, u.Delete(t.Context(), u.Service(m.Name)))
	operatortest.Eventually(t, "drift is repaired", func(c *assert.CollectT) {
		d := operatortest.Live(c, u, u.Deployment(m.Name))
		assert.EqualValues(c, 2, *d.Spec.Replicas)
		operatortest.Live(c, u, u.Service(m.Name))
	})
	u.settled(t, old.Name, metav1.ConditionTrue)
	o.Stop() // which releases the lease
	assert.Empty(t, o.Requests.Denied())
}

// TestPlan runs the program of the operator, and its plan, with the operator's permissions.
func TestPlan(t *testing.T) {
	u := newUser(t, cluster(t))
	operatortest.Install(t, u.User, "memcached").AssertPlans(t, func() {
		u.create(t, "cache", 1)
		u.settled(t, "cache", metav1.ConditionTrue)
	}, func() {
		require.NoError(t, u.Delete(t.Context(), u.Service("cache")))
	})
}

// TestPermissionsAreMinimal compares the generated roles with the specified list.
func TestPermissionsAreMinimal(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	write := "create delete get list patch watch"
	operatortest.Install(t, u.User, "memcached").AssertMinimal(t, map[string]string{
		"memcacheds.cache.example.com":            "get list watch",
		"memcacheds/status.cache.example.com":     "patch",
		"memcacheds/finalizers.cache.example.com": "update",
		"deployments.apps":                        write,
		"services":                                write,
		"pods":                                    "list watch",
		"events.events.k8s.io":                    "create patch",
	})
}

// TestMissingPermission checks that the condition names a missing permission.
func TestMissingPermission(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	access := operatortest.Install(t, u.User, "memcached").Restricted(t, "restricted-"+u.Namespace, func(rule *rbacv1.PolicyRule) {
		if slices.Contains(rule.Resources, "deployments") {
			rule.Verbs = []string{"get", "list", "watch"}
		}
	})
	startOperator(t, access, ctrl.Options{}, u.Namespace)
	u.create(t, "cache", 1)
	operatortest.Eventually(t, "the condition names verb and resource", func(c *assert.CollectT) {
		m := operatortest.Live(c, u, u.memcached("cache", 0))
		got, _ := conditions.Get(m.Status.Conditions, conditions.Ready)
		assert.Equal(c, metav1.ConditionFalse, got.Status)
		assert.Contains(c, got.Message, `cannot create resource "deployments" in API group "apps"`)
	})
}

// TestEachVerbIsUsed takes away each verb of each rule, where owner references are enforced.
func TestEachVerbIsUsed(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	operatortest.Install(t, u.User, "memcached").AssertEachVerbUsed(t, lifecycle)
}

// lifecycle uses all permissions of the operator.
func lifecycle(of *operatortest.User) *operatortest.Lifecycle {
	u := &user{of}
	resize := func(size int32) operatortest.LifecycleStep {
		return operatortest.LifecycleStep{
			Do:    operatortest.Edit(of, u.memcached("cache", 0), func(m *cachev1.Memcached) { m.Spec.Size = size }),
			Until: operatortest.Shows(of, u.Deployment("cache"), func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == size }),
		}
	}
	return &operatortest.Lifecycle{
		Options: ctrl.Options{Scheme: scheme, Cache: controller.Cache(u.Namespace)},
		Setup:   controller.SetupWithManager,
		Before: func(ctx context.Context) error {
			old := u.memcached("old", 1)
			if err := u.Create(ctx, old); err != nil {
				return err
			}
			hidden := tutorialDeployment(u, u.memcached(operatortest.Unseen, 1))
			hidden.ObjectMeta = u.Hidden()
			if err := u.Create(ctx, tutorialDeployment(u, old), client.FieldOwner("manager")); err != nil {
				return err
			}
			return u.CreateAll(hidden, &corev1.Service{ObjectMeta: u.Hidden(), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}})(ctx)
		},
		Steps: []operatortest.LifecycleStep{
			{Do: u.CreateAll(u.memcached("cache", 1)), Until: u.reason("cache", "ServiceReady", conditions.ReasonSucceeded)},
			resize(2),
			{
				Do:    operatortest.Edit(of, u.Service("cache"), func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} }),
				Until: operatortest.Shows(of, u.Service("cache"), func(s *corev1.Service) bool { return s.Spec.Selector["app"] == "memcached" }),
			},
			{
				Do:    operatortest.Edit(of, u.Service("cache"), func(s *corev1.Service) { s.OwnerReferences[0].BlockOwnerDeletion = nil }),
				Until: operatortest.Shows(of, u.Service("cache"), func(s *corev1.Service) bool { return s.OwnerReferences[0].BlockOwnerDeletion != nil }),
			},
			{
				Do:    operatortest.Edit(of, u.Deployment("cache"), func(d *appsv1.Deployment) { d.OwnerReferences[0].BlockOwnerDeletion = nil }),
				Until: operatortest.Shows(of, u.Deployment("cache"), func(d *appsv1.Deployment) bool { return d.OwnerReferences[0].BlockOwnerDeletion != nil }),
			},
			{Until: operatortest.Shows(of, u.Deployment("old"), func(d *appsv1.Deployment) bool { return d.Annotations["opblocks.dev/applied"] != "" })},
			{Do: u.CreateAll(u.memcached(operatortest.Unseen, 1)), Until: u.reason(operatortest.Unseen, conditions.Ready, "OwnedByAnother")},
			{Until: u.reason(operatortest.Unseen, "ServiceReady", "OwnedByAnother")},
			{Do: u.CreateAll(u.memcached(operatortest.Refused, 1)), Until: u.reason(operatortest.Refused, "ServiceReady", conditions.ReasonSucceeded)},
			{Do: u.CreateAll(u.memcached(operatortest.Vanishing, 1)), Until: u.Absent(u.memcached(operatortest.Vanishing, 0))},
		},
	}
}

// reason returns a function that returns an error unless a condition has a reason.
func (u *user) reason(name, conditionType, reason string) func(context.Context) error {
	return operatortest.Shows(u.User, u.memcached(name, 0), func(m *cachev1.Memcached) bool {
		c, _ := conditions.Get(m.Status.Conditions, conditionType)
		return c.Reason == reason
	})
}
