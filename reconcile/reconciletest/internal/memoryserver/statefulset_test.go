package memoryserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// If a claim template and a volume have the same name, the claim replaces the volume, whatever the volume is. Both servers agree on that.
func TestVolumeWithTheNameOfAClaim(t *testing.T) {
	skipOtherVersions(t)
	memory, err := New(testScheme)
	require.NoError(t, err)
	namespace := fmt.Sprintf("claims-%d", time.Now().UnixNano())
	for name, c := range map[string]client.Client{"InMemory": memory.Client(), "Real": newRealSide(t)} {
		t.Run(name, func(t *testing.T) {
			newSide(t, c, namespace)
			volume := func(name string) corev1.Volume { // a Secret without a name is invalid
				return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}
			}
			require.NoError(t, c.Create(t.Context(), withVolume(namespace, "same", volume("data"))))
			require.True(t, apierrors.IsInvalid(c.Create(t.Context(), withVolume(namespace, "other", volume("cache")))))
		})
	}
}

func withVolume(namespace, name string, volume corev1.Volume) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "nginx:1", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
				Volumes:    []corev1.Volume{volume},
			}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}
}
