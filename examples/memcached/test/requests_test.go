package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
)

// TestRequests counts the requests of the operator at the transport, with no other controller running. Each step is done for
// several Memcacheds.
func TestRequests(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	batch := operatortest.NewBatch(20, "cache", func(name string) client.Object { return u.memcached(name, 0) })
	each := batch.Each
	sent := func() map[string]int {
		t.Helper()
		return batch.Sent(t, o, u)
	}
	setSpec := func(edit func(*cachev1.MemcachedSpec)) {
		each(func(name string) { u.set(t, name, edit) })
		each(func(name string) { u.settled(t, name, metav1.ConditionFalse) })
	}

	each(func(name string) { u.create(t, name, 3) })
	each(func(name string) { u.settled(t, name, metav1.ConditionFalse) })
	assert.Equal(t, map[string]int{"POST deployments": 1, "POST services": 1, "PATCH memcacheds/status": 1}, sent(), "creation")

	assert.Empty(t, sent(), "steady state")

	each(func(name string) {
		d := operatortest.Live(t, u, u.Deployment(name))
		d.Status.CollisionCount = new(int32(1))
		require.NoError(t, u.Status().Update(t.Context(), d))
	})
	assert.Empty(t, sent(), "a child's status that is not ours")

	setSpec(func(s *cachev1.MemcachedSpec) { s.Size = 4 })
	assert.Equal(t, map[string]int{"GET deployments": 1, "PATCH deployments": 2, "PATCH memcacheds/status": 1}, sent(),
		"the first change since creation: what the POST owned is migrated")

	setSpec(func(s *cachev1.MemcachedSpec) { s.Memory = &cachev1.Quantity{Quantity: resource.MustParse("128Mi")} })
	assert.Equal(t, map[string]int{"PATCH deployments": 1, "PATCH memcacheds/status": 1}, sent(), "a change of the spec")

	o.Stop()
	o = startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	assert.Empty(t, sent(), "a restart")
}
