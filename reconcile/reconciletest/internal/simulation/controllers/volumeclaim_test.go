package controllers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

func TestPersistentVolumeClaims(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		data := claim("data", "1Gi")
		c.create(data)
		c.settle()
		assert.Equal(t, corev1.ClaimBound, load(c, data).Status.Phase)
		assert.Equal(t, "1Gi", data.Status.Capacity.Storage().String())
		assert.NotEmpty(t, data.Spec.VolumeName)

		change(c, data, func(p *corev1.PersistentVolumeClaim) {
			p.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		c.step()
		require.Len(t, load(c, data).Status.Conditions, 1)
		assert.Equal(t, corev1.PersistentVolumeClaimResizing, data.Status.Conditions[0].Type)
		assert.Equal(t, "1Gi", data.Status.Capacity.Storage().String())
		c.settle()
		assert.Empty(t, load(c, data).Status.Conditions)
		assert.Equal(t, "2Gi", data.Status.Capacity.Storage().String())

		user := &corev1.Pod{ObjectMeta: named("user"), Spec: podTemplate("web:1").Spec}
		user.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
		c.create(user)
		require.NoError(t, c.Delete(t.Context(), data))
		c.settle()
		assert.True(t, c.exists(data), "a pod uses it")
		require.NoError(t, c.Delete(t.Context(), user, client.GracePeriodSeconds(0)))
		c.settle()
		assert.False(t, c.exists(data))
	}, controllers.PersistentVolumeClaims)
}
