package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

func statefulSet(replicas int32, edit ...func(*appsv1.StatefulSetSpec)) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: named("web"), Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: podTemplate("web:1"), VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim("data", "1Gi")},
	}}
	set.Spec.VolumeClaimTemplates[0].Namespace = ""
	for _, e := range edit {
		e(&set.Spec)
	}
	return set
}

// counts returns the counts in a status, in the order of the fields of kubectl rollout status.
func counts(s *appsv1.StatefulSetStatus) [5]int32 {
	return [5]int32{s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas}
}

func TestStatefulSets(t *testing.T) {
	steps := []step{controllers.StatefulSets, controllers.PersistentVolumeClaims}
	set := func() *appsv1.StatefulSet { return &appsv1.StatefulSet{ObjectMeta: named("web")} }
	scale := func(n int32) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n }
	}
	image := func(image string) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = image }
	}

	t.Run("Ordered", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(2))
			var seen [][5]int32
			for c.step() {
				seen = append(seen, counts(&load(c, set()).Status))
			}
			want := [][5]int32{{1, 0, 0, 1, 1}, {2, 1, 1, 2, 2}, {2, 2, 2, 2, 2}}
			assert.Empty(t, cmp.Diff(want, seen), "each pod is created when the one before is ready")
			status := load(c, set()).Status
			assert.EqualValues(t, 1, status.ObservedGeneration)
			assert.Equal(t, status.UpdateRevision, status.CurrentRevision)

			pod := c.assertReady("web-0", "web-1")["web-1"]
			assert.Equal(t, map[string]string{
				"app": "web", "statefulset.kubernetes.io/pod-name": "web-1", "apps.kubernetes.io/pod-index": "1", "controller-revision-hash": status.UpdateRevision,
			}, pod.Labels)
			assert.Equal(t, "web-1", pod.Spec.Hostname)
			assert.Equal(t, "web", pod.Spec.Subdomain)
			assert.Equal(t, "data-web-1", pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
			volume := load(c, claim("data-web-1", "1Gi"))
			assert.Equal(t, corev1.ClaimBound, volume.Status.Phase)
			assert.Equal(t, "web", volume.Labels["app"])
			assert.Empty(t, volume.OwnerReferences, "claims outlive the StatefulSet")
		}, steps...)
	})
	t.Run("Parallel", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(3, func(s *appsv1.StatefulSetSpec) { s.PodManagementPolicy = appsv1.ParallelPodManagement }))
			c.step()
			assert.Len(t, c.pods(), 3)
		}, steps...)
	})
	t.Run("Scale", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(3))
			c.settle()
			uid := c.pods()["web-0"].UID
			change(c, set(), scale(1))
			c.step()
			assert.Len(t, c.pods(), 2, "one at a time goes")
			c.settle()
			assert.Equal(t, uid, c.assertReady("web-0")["web-0"].UID)
			assert.Equal(t, [5]int32{1, 1, 1, 1, 1}, counts(&load(c, set()).Status))
			assert.True(t, c.exists(claim("data-web-2", "1Gi")), "claims stay")
		}, steps...)
	})
	t.Run("RollingUpdate", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(2))
			c.settle()
			before := load(c, set()).Status
			change(c, set(), image("web:2"))
			var seen [][5]int32
			for c.step() {
				status := load(c, set()).Status
				seen = append(seen, counts(&status))
				assert.NotEqual(t, before.UpdateRevision, status.UpdateRevision)
				assert.Equal(t, len(seen) < 5, status.CurrentRevision == before.CurrentRevision, "the update is complete at the end only: %d", len(seen))
			}
			assert.Empty(t, cmp.Diff([][5]int32{
				{1, 1, 1, 1, 0}, {2, 1, 1, 1, 1}, {1, 1, 1, 0, 1}, {2, 1, 1, 0, 2}, {2, 2, 2, 2, 2},
			}, seen))
			assert.Equal(t, map[string]string{"web-0": "web:2", "web-1": "web:2"}, c.images())
		}, steps...)
	})
	t.Run("Partition", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(2))
			c.settle()
			change(c, set(), func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
				image("web:2")(s)
			})
			c.settle()
			assert.Equal(t, map[string]string{"web-0": "web:1", "web-1": "web:2"}, c.images())
			status := load(c, set()).Status
			assert.Equal(t, [5]int32{2, 2, 2, 1, 1}, counts(&status))
			assert.NotEqual(t, status.UpdateRevision, status.CurrentRevision)

			require.NoError(t, c.Delete(t.Context(), c.pods()["web-0"]))
			c.settle()
			assert.Equal(t, "web:1", c.images()["web-0"], "below the partition a pod is created again from the current revision")

			change(c, set(), func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(0)) })
			c.settle()
			assert.Equal(t, map[string]string{"web-0": "web:2", "web-1": "web:2"}, c.images())
		}, steps...)
	})
	t.Run("OnDelete", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(2, func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }))
			c.settle()
			change(c, set(), image("web:2"))
			c.settle()
			require.NoError(t, c.Delete(t.Context(), c.pods()["web-0"]))
			c.settle()
			assert.Equal(t, map[string]string{"web-0": "web:2", "web-1": "web:1"}, c.images())
		}, steps...)
	})
	t.Run("BrokenImage", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(2))
			c.settle()
			change(c, set(), image("registry.invalid/web:2"))
			c.settle()
			pods := c.pods()
			assert.Equal(t, "ImagePullBackOff", pods["web-1"].Status.ContainerStatuses[0].State.Waiting.Reason)
			assert.Equal(t, "web:1", pods["web-0"].Spec.Containers[0].Image, "the update waits")
			assert.Equal(t, [5]int32{2, 1, 1, 1, 1}, counts(&load(c, set()).Status))
			change(c, set(), image("web:3"))
			c.settle()
			assert.Equal(t, "registry.invalid/web:2", c.images()["web-1"], "as the real controller, it waits for the broken pod until somebody deletes it")
			require.NoError(t, c.Delete(t.Context(), c.pods()["web-1"]))
			c.settle()
			assert.Equal(t, map[string]string{"web-0": "web:3", "web-1": "web:3"}, c.images())
		}, steps...)
	})
	t.Run("Adoption", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(1))
			c.settle()
			uid := c.pods()["web-0"].UID
			require.NoError(t, c.Delete(t.Context(), set(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
			c.settle()
			c.create(statefulSet(1))
			c.settle()
			pod := c.assertReady("web-0")["web-0"]
			assert.Equal(t, uid, pod.UID)
			assert.True(t, metav1.IsControlledBy(pod, load(c, set())))
		}, steps...)
	})
	t.Run("ClaimRetention", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			remove := appsv1.DeletePersistentVolumeClaimRetentionPolicyType
			c.create(statefulSet(2, func(s *appsv1.StatefulSetSpec) {
				s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: remove, WhenScaled: remove}
			}))
			c.settle()
			change(c, set(), scale(1))
			c.settle()
			assert.False(t, c.exists(claim("data-web-1", "1Gi")))
			assert.True(t, c.exists(claim("data-web-0", "1Gi")))
			require.NoError(t, c.Delete(t.Context(), set()))
			c.settle()
			assert.False(t, c.exists(claim("data-web-0", "1Gi")))
			assert.Empty(t, c.pods())
		}, steps...)
	})
	t.Run("Recreated", func(t *testing.T) {
		for _, policy := range []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement} {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.create(statefulSet(2, func(s *appsv1.StatefulSetSpec) { s.PodManagementPolicy = policy }))
				c.settle()
				uid := c.pods()["web-0"].UID
				require.NoError(t, c.Delete(t.Context(), set()))
				c.create(statefulSet(2, func(s *appsv1.StatefulSetSpec) { s.PodManagementPolicy = policy }))
				c.settle()
				assert.NotEqual(t, uid, c.assertReady("web-0", "web-1")["web-0"].UID, "the pods of the former one are deleted first")
			}, steps...)
		}
	})
	t.Run("StatusOfAPodIsKept", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(statefulSet(1))
			c.settle()
			changeStatus(c, c.pods()["web-0"], func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse })
			c.settle()
			assert.Equal(t, [5]int32{1, 0, 0, 1, 1}, counts(&load(c, set()).Status))
			changeStatus(c, c.pods()["web-0"], func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
			c.settle()
			assert.Equal(t, [5]int32{1, 1, 1, 1, 1}, counts(&load(c, set()).Status), "a pod that has failed is replaced")
		}, steps...)
	})
}
