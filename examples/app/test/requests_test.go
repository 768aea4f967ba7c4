package test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
)

// What the operator sends, counted at the transport, with no other controller running. Each step is done for several
// Apps at once.
func TestRequests(t *testing.T) {
	const many = 5
	u := newUser(t, apiServer(t))
	o := startOperator(t, u.cp.Config(), ctrl.Options{}, u.namespace)
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("web-%d", i)
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
	setSpec := func(edit func(*appv1.AppSpec)) {
		each(func(name string) { u.set(t, name, edit) })
		each(func(name string) { u.settled(t, name, corev1.ConditionFalse) })
	}
	setStatus := func(edit func(*appsv1.DeploymentStatus)) {
		each(func(name string) {
			d := live(t, u, u.deployment(name))
			edit(&d.Status)
			require.NoError(t, u.Status().Update(t.Context(), d))
		})
	}

	each(func(name string) { u.create(t, name) })
	each(func(name string) { u.settled(t, name, corev1.ConditionFalse) })
	assert.Equal(t, map[string]int{"POST deployments": 1, "POST services": 1, "PATCH apps/status": 1}, perObject(), "creation")

	assert.Empty(t, perObject(), "steady state")

	each(func(name string) {
		s := live(t, u, u.service(name))
		s.Status.Conditions = []metav1.Condition{{Type: "Example", Status: metav1.ConditionTrue, Reason: "Example", LastTransitionTime: metav1.Now()}}
		require.NoError(t, u.Status().Update(t.Context(), s))
	})
	assert.Empty(t, perObject(), "a child's status that is not ours")

	setStatus(func(s *appsv1.DeploymentStatus) { s.ObservedGeneration, s.Replicas, s.UnavailableReplicas = 1, 1, 1 })
	assert.Equal(t, map[string]int{"PATCH apps/status": 1}, perObject(), "a child's status that is ours")

	setSpec(func(s *appv1.AppSpec) { s.Image = "nginx:1.17" })
	assert.Equal(t, map[string]int{"GET deployments": 1, "PATCH deployments": 2, "PATCH apps/status": 1}, perObject(),
		"the first change since creation: what the POST owned is migrated")

	setSpec(func(s *appv1.AppSpec) { s.Image = "nginx:1.18" })
	assert.Equal(t, map[string]int{"PATCH deployments": 1, "PATCH apps/status": 1}, perObject(), "a change of the spec")

	setSpec(func(s *appv1.AppSpec) { s.Ports = nil })
	assert.Equal(t, map[string]int{"PATCH deployments": 1, "DELETE services": 1, "PATCH apps/status": 1}, perObject(), "a child that is not wanted any more")

	o.stop()
	o = startOperator(t, u.cp.Config(), ctrl.Options{}, u.namespace)
	assert.Empty(t, perObject(), "a restart")
}

// quiet returns when the operator has done all that it has to do: it has begun two passes over each App since, and
// so ended one.
func (u *user) quiet(t *testing.T, o *operator, names ...string) {
	t.Helper()
	for range 2 {
		before := map[string]int{}
		for _, name := range names {
			before[name] = o.observed.count(name)
			change(t, u, u.app(name), func(m *appv1.App) {
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
