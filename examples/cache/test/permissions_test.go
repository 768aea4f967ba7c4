package test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestPermissionsSuffice runs the operator with its ServiceAccount and the generated roles.
func TestPermissionsSuffice(t *testing.T) {
	u := newUser(t, cluster(t))
	installed := operatortest.Install(t, u.User, "cache")
	o := startOperator(t, installed.Access(t), installed.LeaderElection("cache.store.example.com")) // in all namespaces, as deployed

	require.NoError(t, u.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: u.Meta("common"), Data: map[string]string{"maxmemory": "1mb"}}))
	c := u.create(t, "web", func(s *storev1alpha1.CacheSpec) {
		s.SettingsFrom, s.Priority = &corev1.LocalObjectReference{Name: "common"}, new(int32(7))
		s.Backup, s.KeepBackups = &storev1alpha1.BackupSpec{Schedule: "@every 1s"}, true
	})
	u.settled(t, c.Name, metav1.ConditionTrue)
	operatortest.Eventually(t, "there are as many backups as are kept", func(a *assert.CollectT) {
		var jobs batchv1.JobList
		require.NoError(a, u.List(t.Context(), &jobs, client.InNamespace(u.Namespace)))
		jobs.Items = slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool { return job.Status.CompletionTime == nil })
		assert.Len(a, jobs.Items, 3)
	})
	u.set(t, c.Name, func(s *storev1alpha1.CacheSpec) {
		s.Storage, s.PasswordVersion, s.Priority, s.KeepBackups = gi("2"), "2", new(int32(8)), false
		s.Backup.Storage = gi("2")
	})
	u.settled(t, c.Name, metav1.ConditionTrue)
	for _, child := range children(u, c.Name) {
		u.DeleteAndAwaitNew(t, child)
	}
	u.settled(t, c.Name, metav1.ConditionTrue)
	require.NoError(t, u.Delete(t.Context(), c))
	u.Gone(t, append(children(u, c.Name), c)...)
	o.Stop() // which releases the lease
	assert.Empty(t, o.Requests.Denied())
}

// TestPermissionsAreMinimal compares the generated roles with the specified list.
func TestPermissionsAreMinimal(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	write := "create delete get list patch watch"
	operatortest.Install(t, u.User, "cache").AssertMinimal(t, map[string]string{
		"caches.store.example.com":                       "get list patch watch",
		"caches/status.store.example.com":                "patch",
		"caches/finalizers.store.example.com":            "update",
		"statefulsets.apps":                              write,
		"services":                                       write,
		"configmaps":                                     write,
		"secrets":                                        write,
		"persistentvolumeclaims":                         write,
		"pods":                                           "delete list patch watch",
		"jobs.batch":                                     write,
		"poddisruptionbudgets.policy":                    write,
		"networkpolicies.networking.k8s.io":              write,
		"priorityclasses.scheduling.k8s.io":              write,
		"servicemonitors.monitoring.coreos.com":          write,
		"customresourcedefinitions.apiextensions.k8s.io": "list watch",
		"events.events.k8s.io":                           "create patch",
	})
}

// TestMissingPermission checks that the condition names a missing permission.
func TestMissingPermission(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	access := operatortest.Install(t, u.User, "cache").Restricted(t, "restricted-"+u.Namespace, func(rule *rbacv1.PolicyRule) {
		if slices.Contains(rule.Resources, "priorityclasses") {
			rule.Verbs = []string{"get", "list", "watch"}
		}
	})
	startOperator(t, access, ctrl.Options{}, u.Namespace)
	u.create(t, "web", func(s *storev1alpha1.CacheSpec) { s.Priority = new(int32(7)) })
	operatortest.Eventually(t, "the condition names verb and resource", func(c *assert.CollectT) {
		got, _ := conditions.Get(operatortest.Live(c, u, u.cache("web")).Status.Conditions, conditions.Ready)
		assert.Equal(c, metav1.ConditionFalse, got.Status)
		assert.Contains(c, got.Message, `cannot create resource "priorityclasses" in API group "scheduling.k8s.io"`)
	})
	require.NoError(t, u.Delete(t.Context(), u.cache("web")))
	u.Gone(t, u.cache("web"))
}
