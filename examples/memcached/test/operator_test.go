package test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

const (
	crds       = "../config/crd/bases"
	sampleFile = "../config/samples/cache_v1alpha1_memcached.yaml"
	sampleName = "memcached-sample"
)

var (
	// cluster has all controllers and simulated nodes; on apiServer nobody but us writes anything.
	cluster   = operatortest.WithCRDs(crds, controlplanetest.Shared(controlplane.WithControllers()))
	apiServer = operatortest.WithCRDs(crds, controlplanetest.Shared())

	scheme = operatortest.NewScheme(cachev1alpha1.AddToScheme)
)

// startOperator starts the operator for some namespaces; it is stopped when the test ends.
func startOperator(t *testing.T, access *rest.Config, options ctrl.Options, namespaces ...string) *operatortest.Operator {
	t.Helper()
	options.Scheme = scheme
	if options.Cache.ByObject == nil {
		options.Cache = controller.Cache(namespaces...)
	}
	return operatortest.Start(t, access, options, &cachev1alpha1.Memcached{}, controller.SetupWithManager)
}

// user is the test's own access to one namespace, as an administrator.
type user struct{ *operatortest.User }

func newUser(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	return &user{operatortest.NewUser(t, cp, scheme)}
}

func (u *user) memcached(name string, size int32) *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{ObjectMeta: u.Meta(name), Spec: cachev1alpha1.MemcachedSpec{Size: size}}
}

// create creates a Memcached as a user would.
func (u *user) create(t *testing.T, name string, size int32) *cachev1alpha1.Memcached {
	t.Helper()
	m := u.memcached(name, size)
	require.NoError(t, u.Create(t.Context(), m))
	return m
}

// set edits a Memcached's spec.
func (u *user) set(t *testing.T, name string, edit func(*cachev1alpha1.MemcachedSpec)) {
	t.Helper()
	operatortest.Change(t, u, u.memcached(name, 0), func(m *cachev1alpha1.Memcached) { edit(&m.Spec) })
}

// pods gives the names of a Memcached's pods, sorted as the API server sorts them, without those that are terminating.
func (u *user) pods(ctx context.Context, name string) ([]string, error) {
	var list corev1.PodList
	err := u.List(ctx, &list, client.InNamespace(u.Namespace), client.MatchingLabels{"memcached_cr": name})
	names := []string{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, err
}

// settled waits until the status is about the present spec, and Ready or not as expected, and gives the object.
func (u *user) settled(t *testing.T, name string, ready metav1.ConditionStatus) *cachev1alpha1.Memcached {
	t.Helper()
	m := u.memcached(name, 0)
	operatortest.Eventually(t, "Ready is "+string(ready), func(c *assert.CollectT) {
		operatortest.Live(c, u, m)
		assert.Equal(c, m.Generation, m.Status.ObservedGeneration)
		got, _ := conditions.Get(m.Status.Conditions, conditions.Ready)
		assert.Equal(c, ready, got.Status, "%s: %s", got.Reason, got.Message)
	})
	return m
}

// condition waits until a condition has that reason, and gives it.
func (u *user) condition(t *testing.T, name, conditionType, reason string) metav1.Condition {
	t.Helper()
	var got metav1.Condition
	m := u.memcached(name, 0)
	operatortest.Eventually(t, conditionType+" is "+reason, func(c *assert.CollectT) {
		operatortest.Live(c, u, m)
		got, _ = conditions.Get(m.Status.Conditions, conditionType)
		assert.Equal(c, reason, got.Reason, "%s: %s", got.Status, got.Message)
	})
	return got
}
