package storageversion

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// rules returns the permissions that the documentation of the package lists.
func (f *fixture) rules() []rbacv1.PolicyRule {
	name := []string{"widgets." + f.group}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: name, Verbs: []string{"get"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions/status"}, ResourceNames: name, Verbs: []string{"patch"}},
		{APIGroups: []string{f.group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{f.group}, Resources: []string{"widgets/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{migrationKind.Group}, Resources: []string{"storageversionmigrations"}, Verbs: []string{"create"}},
		{APIGroups: []string{migrationKind.Group}, Resources: []string{"storageversionmigrations"}, ResourceNames: name, Verbs: []string{"get", "delete"}},
	}
}

// operator returns a configuration for a ServiceAccount that has only these permissions. It returns when the API server has
// seen them.
func (f *fixture) operator(rules []rbacv1.PolicyRule) *rest.Config {
	f.t.Helper()
	ctx, meta := f.t.Context(), metav1.ObjectMeta{Name: f.namespace}
	require.NoError(f.t, f.c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "operator"}}))
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: *meta.DeepCopy(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.namespace},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "operator"}},
	}
	for _, object := range []client.Object{role, binding} {
		require.NoError(f.t, f.c.Create(ctx, object))
		f.t.Cleanup(func() { assert.NoError(f.t, f.c.Delete(context.Background(), object)) })
	}
	config, err := f.cp.ServiceAccountConfig(ctx, f.namespace, "operator")
	require.NoError(f.t, err)
	c, err := client.New(config, client.Options{})
	require.NoError(f.t, err)
	f.eventually("the authorizer has seen the role", func(ctx context.Context) (bool, error) {
		return c.Get(ctx, client.ObjectKeyFromObject(f.definition()), f.definition()) == nil, nil
	})
	return config
}

// TestMigrateWithRules proves that a manager with only the documented permissions migrates. Managers of some objects have a version that
// is not served any more, which needs the most permissions.
func TestMigrateWithRules(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 3)
	f.define(version{"v1alpha1", false, false}, version{"v1", true, true})
	scheme := runtime.NewScheme()
	kind := schema.GroupVersionKind{Group: f.group, Version: "v1", Kind: "Widget"}
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	mgr, err := ctrl.NewManager(f.operator(f.rules()), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(kind)
	require.NoError(t, Migrate(mgr, widget, Rate(1000)))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	f.eventually("the objects are migrated", func(context.Context) (bool, error) {
		return slices.Equal([]string{"v1"}, f.readDefinition().Status.StoredVersions), nil
	})
	stop()
	require.NoError(t, <-ended)
	for _, entry := range f.read("v1", "w2").GetManagedFields() {
		assert.Equal(t, f.group+"/v1", entry.APIVersion)
	}
}

// TestMissingRight: the role lacks a permission. The test proves that the walk ends at the first object, and that no message advises to
// delete objects.
func TestMissingRight(t *testing.T) {
	f := newFixture(t, withoutCluster(t), 3)
	isStatus := func(rule rbacv1.PolicyRule) bool { return slices.Equal(rule.Resources, []string{"widgets/status"}) }
	c, err := client.NewWithWatch(f.operator(slices.DeleteFunc(f.rules(), isStatus)), client.Options{})
	require.NoError(t, err)
	var written []string
	m := f.migrator(beforeWrites(c, func(obj client.Object) error {
		written = append(written, obj.GetName())
		return nil
	}))
	err = f.finish(m)
	require.ErrorContains(t, err, `cannot patch resource "widgets/status"`)
	assert.Equal(t, []string{"widgets." + f.group, "w0", "widgets." + f.group}, written)
	message := condition(f.readDefinition()).Message
	assert.Contains(t, message, "compare the role with the rules in the documentation of package storageversion")
	assert.NotContains(t, message, "delete them")
}

// TestMigrateByCluster: the cluster's own controller migrates. The test proves that this works with the documented permissions, and that
// afterwards our StorageVersionMigration is deleted.
func TestMigrateByCluster(t *testing.T) {
	cp := controlplane.New(t, controlplane.Options{Nodes: new(0)})
	f := newFixture(t, cp, 3)
	require.NoError(t, cp.RestartControllerManager(t.Context())) // the controller needs the garbage collector, which looks for new kinds only every 30 seconds
	c, err := client.NewWithWatch(f.operator(f.rules()), client.Options{})
	require.NoError(t, err)
	m := f.migrator(beforeWrites(c, func(obj client.Object) error {
		t.Errorf("the migration is the cluster's, and %s was written", obj.GetName())
		return nil
	}))
	m.clock = clocktesting.NewFakeClock(m.clock.Now()) // this clock does not move, so the package does not stop waiting for the cluster
	f.eventually("the cluster has migrated", func(ctx context.Context) (bool, error) {
		delay, err := m.step(ctx)
		return delay == idle, err
	})
	assert.Equal(t, []string{"v1"}, f.readDefinition().Status.StoredVersions)
	for name, object := range readStored(t, f.cp, f.group, "widgets") {
		assert.Equal(t, f.group+"/v1", object.apiVersion, name)
	}
	state, _, err := m.readMigration(t.Context(), "widgets."+f.group)
	require.NoError(t, err)
	assert.Equal(t, clusterMigration{served: true}, state, "our StorageVersionMigration is deleted")
}
