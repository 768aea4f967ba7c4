package controllers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

func TestServices(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		web := &corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		internal := &corev1.Service{ObjectMeta: named("internal"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		c.create(web)
		c.create(internal)
		c.step()
		assert.NotEmpty(t, load(c, web).Finalizers)
		assert.Empty(t, web.Status.LoadBalancer.Ingress, "the load balancer is being made")
		c.settle()
		require.Len(t, load(c, web).Status.LoadBalancer.Ingress, 1)
		assert.NotEmpty(t, web.Status.LoadBalancer.Ingress[0].IP)
		assert.Empty(t, load(c, internal).Finalizers)
		assert.Empty(t, internal.Status.LoadBalancer.Ingress)

		change(c, web, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
		c.settle()
		assert.Empty(t, load(c, web).Finalizers)
		assert.Empty(t, web.Status.LoadBalancer.Ingress)

		change(c, web, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
		c.settle()
		require.NoError(t, c.Delete(t.Context(), load(c, web)))
		c.settle()
		assert.False(t, c.exists(web))
	}, controllers.Services)
}
