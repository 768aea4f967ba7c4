package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestRequests counts the requests of the operator at the transport, with no other controller running. Each step is done for
// several Apps.
func TestRequests(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	batch := operatortest.NewBatch(5, "web", func(name string) client.Object { return u.app(name) })
	each := batch.Each
	sent := func() map[string]int {
		t.Helper()
		return batch.Sent(t, o, u)
	}
	setSpec := func(edit func(*appv1.AppSpec)) {
		each(func(name string) { u.set(t, name, edit) })
		each(func(name string) { u.settled(t, name, corev1.ConditionFalse) })
	}
	setStatus := func(edit func(*appsv1.DeploymentStatus)) {
		each(func(name string) {
			d := operatortest.Live(t, u, u.Deployment(name))
			edit(&d.Status)
			require.NoError(t, u.Status().Update(t.Context(), d))
		})
	}

	each(func(name string) { u.create(t, name) })
	each(func(name string) { u.settled(t, name, corev1.ConditionFalse) })
	assert.Equal(t, map[string]int{"POST deployments": 1, "POST services": 1, "PATCH apps/status": 1}, sent(), "creation")

	assert.Empty(t, sent(), "steady state")

	each(func(name string) {
		s := operatortest.Live(t, u, u.Service(name))
		s.Status.Conditions = []metav1.Condition{{Type: "Example", Status: metav1.ConditionTrue, Reason: "Example", LastTransitionTime: metav1.Now()}}
		require.NoError(t, u.Status().Update(t.Context(), s))
	})
	assert.Empty(t, sent(), "a child's status that is not ours")

	setStatus(func(s *appsv1.DeploymentStatus) { s.ObservedGeneration, s.Replicas, s.UnavailableReplicas = 1, 1, 1 })
	assert.Equal(t, map[string]int{"PATCH apps/status": 1}, sent(), "a child's status that is ours")

	setSpec(func(s *appv1.AppSpec) { s.Image = "nginx:1.17" })
	assert.Equal(t, map[string]int{"GET deployments": 1, "PATCH deployments": 2, "PATCH apps/status": 1}, sent(),
		"the first change since creation: what the POST owned is migrated")

	setSpec(func(s *appv1.AppSpec) { s.Image = "nginx:1.18" })
	assert.Equal(t, map[string]int{"PATCH deployments": 1, "PATCH apps/status": 1}, sent(), "a change of the spec")

	var ports []corev1.ServicePort
	setSpec(func(s *appv1.AppSpec) { ports, s.Ports = s.Ports, nil })
	assert.Equal(t, map[string]int{"GET apps": 1, "PATCH deployments": 1, "DELETE services": 1, "PATCH apps/status": 1}, sent(),
		"a child that is not wanted any more: once in the life of a process it is made sure that its owner does not want it")
	setSpec(func(s *appv1.AppSpec) { s.Ports = ports })
	sent()
	setSpec(func(s *appv1.AppSpec) { s.Ports = nil })
	assert.Equal(t, map[string]int{"PATCH deployments": 1, "DELETE services": 1, "PATCH apps/status": 1}, sent(), "another one")

	o.Stop()
	o = startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	assert.Empty(t, sent(), "a restart")
}
