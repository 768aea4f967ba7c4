package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// claimEnv is a namespace with a PersistentVolumeClaim that is bound and can grow.
type claimEnv struct {
	*ownedtest.Server
	class string
}

func newClaimEnv(t *testing.T) *claimEnv {
	t.Helper()
	env := &claimEnv{Server: newServer(t)}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "grows-"}, Provisioner: "example.com/disk", AllowVolumeExpansion: new(true)}
	env.CreateForTest(t, class)
	env.class = class.Name
	env.MustApply(t, env.wish("1Gi", "1"))
	ownedtest.ByHand(t, env.Server, &corev1.PersistentVolumeClaim{}, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "volume" })
	env.setCapacity(t, "1Gi")
	return env
}

// wish returns the PersistentVolumeClaim that an operator builds.
func (env *claimEnv) wish(size, version string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: env.Meta(), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &env.class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}}
	claim.Labels["version"] = version
	return claim
}

// setCapacity binds the PersistentVolumeClaim to a volume of this capacity, as the controllers of Kubernetes do.
func (env *claimEnv) setCapacity(t *testing.T, capacity string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	env.Live(t, claim)
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	require.NoError(t, env.Other.Status().Update(t.Context(), claim))
}

// grow raises the storage request of the live PersistentVolumeClaim as another writer.
func (env *claimEnv) grow(t *testing.T, size string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	env.Live(t, claim)
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	require.NoError(t, env.Other.Update(t.Context(), claim, client.FieldOwner("autoscaler")))
}

func requested(obj client.Object) string {
	return obj.(*corev1.PersistentVolumeClaim).Spec.Resources.Requests.Storage().String()
}

func TestClaimThatSomebodyElseHasLetGrow(t *testing.T) {
	env := newClaimEnv(t)
	env.grow(t, "5Gi")
	env.setCapacity(t, "5Gi")
	result := env.MustApply(t, env.wish("1Gi", "1"))
	require.Equal(t, apply.Unchanged, result.Operation, "the smaller request is not sent")
	result = env.MustApply(t, env.wish("1Gi", "2"))
	require.Equal(t, "2", result.Object.GetLabels()["version"], "other changes are made")
	require.Equal(t, "5Gi", requested(result.Object))
	for _, entry := range result.Object.GetManagedFields() {
		if entry.Manager != "autoscaler" {
			require.NotContains(t, string(entry.FieldsV1.GetRawBytes()), `"f:requests"`, "the request is not ours: the other manager may apply it")
		}
	}
	result = env.MustApply(t, env.wish("2Gi", "2"))
	require.Equal(t, "5Gi", requested(result.Object), "a wish that is still smaller")
	result = env.MustApply(t, env.wish("9Gi", "2"))
	require.Equal(t, "9Gi", requested(result.Object), "a larger wish is sent")
}

// After an expansion has failed, the API server accepts a smaller storage request, as long as it is above the capacity.
func TestClaimWithALoweredWish(t *testing.T) {
	env := newClaimEnv(t)
	env.MustApply(t, env.wish("9Gi", "1"))
	result := env.MustApply(t, env.wish("4Gi", "1"))
	require.Equal(t, "4Gi", requested(result.Object), "the request is ours, so it is sent")
	env.setCapacity(t, "4Gi")
	_, err := env.Apply(t, env.wish("2Gi", "1"))
	require.True(t, apierrors.IsInvalid(err), "a volume cannot shrink: %v", err)
}
