package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const (
	sampleFile = "../config/samples/cache_v1_memcached.yaml"
	sampleName = "memcached-sample"
)

var (
	cluster, apiServer = operatortest.ControlPlanes("../config/crd/bases", operatortest.EnforceOwnerReferences)

	scheme = operatortest.NewScheme(cachev1.AddToScheme)
)

// startOperator starts the operator for some namespaces. It is stopped when the test ends.
func startOperator(t *testing.T, access *rest.Config, options ctrl.Options, namespaces ...string) *operatortest.Operator {
	t.Helper()
	options.Scheme = scheme
	if options.Cache.ByObject == nil {
		options.Cache = controller.Cache(namespaces...)
	}
	return operatortest.Start(t, access, options, &cachev1.Memcached{}, controller.SetupWithManager)
}

// user is the access of the test itself to a namespace, as an administrator.
type user struct{ *operatortest.User }

func newUser(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	return &user{operatortest.NewUser(t, cp, scheme)}
}

func (u *user) memcached(name string, size int32) *cachev1.Memcached {
	return &cachev1.Memcached{ObjectMeta: u.Meta(name), Spec: cachev1.MemcachedSpec{Size: size}}
}

// create creates a Memcached as a user would.
func (u *user) create(t *testing.T, name string, size int32) *cachev1.Memcached {
	t.Helper()
	m := u.memcached(name, size)
	require.NoError(t, u.Create(t.Context(), m))
	return m
}

// set edits the spec of a Memcached.
func (u *user) set(t *testing.T, name string, edit func(*cachev1.MemcachedSpec)) {
	t.Helper()
	operatortest.Change(t, u, u.memcached(name, 0), func(m *cachev1.Memcached) { edit(&m.Spec) })
}

// pods returns the names of a Memcached's pods, sorted, without those that are terminating.
func (u *user) pods(t require.TestingT, name string) []string {
	return u.PodNames(t, client.MatchingLabels{"memcached_cr": name})
}

var status operatortest.StatusOf[*cachev1.Memcached] = func(m *cachev1.Memcached, conditionType string) (int64, metav1.Condition) {
	c, _ := conditions.Get(m.Status.Conditions, conditionType)
	return m.Status.ObservedGeneration, c
}

// settled waits until the operator has observed the present spec and Ready has the given status. It returns the object.
func (u *user) settled(t *testing.T, name string, ready metav1.ConditionStatus) *cachev1.Memcached {
	t.Helper()
	return status.AwaitReady(t, u, u.memcached(name, 0), ready)
}

// listed waits until a Memcached is ready and its status lists a number of nodes, and returns the object. The operator's cache may
// show the end of a rollout before it shows all pods, since it watches them apart.
func (u *user) listed(t *testing.T, name string, nodes int) *cachev1.Memcached {
	t.Helper()
	m := u.settled(t, name, metav1.ConditionTrue)
	operatortest.Eventually(t, "the status lists the nodes", func(c *assert.CollectT) {
		assert.Len(c, operatortest.Live(c, u, m).Status.Nodes, nodes)
	})
	return m
}

// condition waits until a condition has a reason, and returns it.
func (u *user) condition(t *testing.T, name, conditionType, reason string) metav1.Condition {
	t.Helper()
	return status.AwaitReason(t, u, u.memcached(name, 0), conditionType, reason)
}
