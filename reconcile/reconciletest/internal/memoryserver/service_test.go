package memoryserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestServiceAllocation(t *testing.T) {
	c := newTestServer(t).Client()
	first, second := testService(), testService()
	second.Name = "t"
	require.NoError(t, c.Create(t.Context(), first))
	require.NoError(t, c.Create(t.Context(), second))
	require.NotEqual(t, first.Spec.ClusterIP, second.Spec.ClusterIP)
	again := testService()
	again.ResourceVersion, again.Spec.Type = first.ResourceVersion, corev1.ServiceTypeNodePort
	require.NoError(t, c.Update(t.Context(), again), "the address is left out")
	require.Equal(t, first.Spec.ClusterIP, again.Spec.ClusterIP)
	port := again.Spec.Ports[0].NodePort
	require.NotZero(t, port)
	again.Spec.Ports[0].NodePort = 0
	require.NoError(t, c.Update(t.Context(), again))
	require.Equal(t, port, again.Spec.Ports[0].NodePort)
	require.NoError(t, c.Delete(t.Context(), second))
	second = testService()
	second.Name, second.Spec.ClusterIP = "u", first.Spec.ClusterIP
	require.ErrorContains(t, c.Create(t.Context(), second), "provided IP is already allocated")
}
