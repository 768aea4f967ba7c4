package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestRequests counts the requests of the operator at the transport, with no other controller running. Each step is done for
// several Erus.
func TestRequests(t *testing.T) {
	u := newUser(t, apiServer(t))
	r, clock := stepped()
	o := startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	batch := operatortest.NewBatch(10, "web", func(name string) client.Object { return u.eru(name) })
	each := batch.Each
	sent := func() map[string]int {
		t.Helper()
		return batch.Sent(t, o, u)
	}

	each(func(name string) { u.rolledOut(t, name, true) })
	each(func(name string) { u.becomes(t, name, created) })
	assert.Equal(t, map[string]int{"POST erus": 1, "PATCH erus/status": 1}, sent(), "an Eru that is asked for")
	assert.Empty(t, sent(), "steady state")

	each(func(name string) {
		u.set(t, name, func(s *eruv1.EruSpec) { s.Enabled, s.Schedule = true, "0 4 * * *" })
	})
	each(func(name string) { u.becomes(t, name, scheduled) })
	assert.Equal(t, map[string]int{"PATCH erus": 1, "PATCH erus/status": 1}, sent(), "enabled: the annotations, and the status")
	assert.Empty(t, sent(), "steady state")

	each(func(name string) {
		operatortest.Change(t, u, u.Deployment(name), func(d *appsv1.Deployment) { d.Labels = map[string]string{"team": "blue"} })
	})
	assert.Empty(t, sent(), "a change of the Deployment that means nothing")

	clock.SetTime(four)
	assert.Equal(t, map[string]int{"PATCH deployments": 1, "PATCH erus/status": 1}, sent(), "a restart")
	assert.Empty(t, sent(), "while it rolls out")
	each(func(name string) { u.rollOut(t, name) })
	each(func(name string) { u.becomes(t, name, restarted) })
	assert.Equal(t, map[string]int{"PATCH erus/status": 1}, sent(), "its end")
	assert.Empty(t, sent(), "steady state")

	o.Stop()
	o = startOperator(t, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	assert.Empty(t, sent(), "a restart of the operator")

	each(func(name string) {
		operatortest.Change(t, u, u.Deployment(name), func(d *appsv1.Deployment) { d.Annotations = nil })
	})
	each(func(name string) { u.becomes(t, name, withdrawn) })
	assert.Equal(t, map[string]int{"PATCH erus/status": 1}, sent(), "withdrawn")
}
