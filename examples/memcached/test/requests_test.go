package test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
)

// What the operator sends, counted at the transport, with no other controller running. Each step is done for several
// Memcacheds at once.
func TestRequests(t *testing.T) {
	const many = 20
	u := newUser(t, apiServer(t))
	o := startOperator(t, u.cp.Config(), ctrl.Options{}, u.namespace)
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("cache-%d", i)
	}
	each := func(do func(name string)) {
		for _, name := range names {
			do(name)
		}
	}
	// perObject is what was sent since the last call, divided by the number of objects.
	perObject := func() map[string]int {
		t.Helper()
		u.quiet(t, o, names...)
		counts := o.requests.Take()
		for what, n := range maps.All(counts) {
			assert.Zero(t, n%many, "%d %s for %d objects", n, what, many)
			counts[what] = n / many
		}
		return counts
	}
	setSpec := func(edit func(*cachev1alpha1.MemcachedSpec)) {
		each(func(name string) {
			change(t, u, u.memcached(name, 0), func(m *cachev1alpha1.Memcached) { edit(&m.Spec) })
		})
		each(func(name string) { u.settled(t, name, metav1.ConditionFalse) })
	}

	each(func(name string) { u.create(t, name, 3) })
	each(func(name string) { u.settled(t, name, metav1.ConditionFalse) })
	assert.Equal(t, map[string]int{"POST deployments": 1, "POST services": 1, "PATCH memcacheds/status": 1}, perObject(), "creation")

	assert.Empty(t, perObject(), "steady state")

	each(func(name string) {
		d := u.deployment(name)
		require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		d.Status.CollisionCount = new(int32(1))
		require.NoError(t, u.Status().Update(t.Context(), d))
	})
	assert.Empty(t, perObject(), "a child's status that is not ours")

	setSpec(func(s *cachev1alpha1.MemcachedSpec) { s.Size = 4 })
	assert.Equal(t, map[string]int{"GET deployments": 1, "PATCH deployments": 2, "PATCH memcacheds/status": 1}, perObject(),
		"the first change since creation: what the POST owned is migrated")

	setSpec(func(s *cachev1alpha1.MemcachedSpec) { s.MemoryMB = 128 })
	assert.Equal(t, map[string]int{"PATCH deployments": 1, "PATCH memcacheds/status": 1}, perObject(), "a change of the spec")

	o.stop()
	o = startOperator(t, u.cp.Config(), ctrl.Options{}, u.namespace)
	assert.Empty(t, perObject(), "a restart")
}

// quiet returns when the operator has done all that it has to do: it has begun two passes over each Memcached since, and
// so ended one.
func (u *user) quiet(t *testing.T, o *operator, names ...string) {
	t.Helper()
	for range 2 {
		before := map[string]int{}
		for _, name := range names {
			before[name] = o.observed.count(name)
			change(t, u, u.memcached(name, 0), func(m *cachev1alpha1.Memcached) {
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, "example.com/touched", time.Now().String())
			})
		}
		eventually(t, "a pass over each", func(c *assert.CollectT) {
			for _, name := range names {
				assert.Greater(c, o.observed.count(name), before[name])
			}
		})
	}
}
