//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// node does what a kubelet does for a pod, as far as the pod's container needs it. The pod's status comes from simulated nodes.
type node struct {
	client.Client
	cp *controlplane.ControlPlane
}

// mount writes the files of a volume to a folder.
func (n *node) mount(t *testing.T, pod *corev1.Pod, name, folder string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != name {
			continue
		}
		switch {
		case volume.Secret != nil:
			secret := &corev1.Secret{}
			n.read(t, pod, volume.Secret.SecretName, secret)
			for key, value := range secret.Data {
				write(t, folder, key, value)
			}
		case volume.Projected != nil:
			for i := range volume.Projected.Sources {
				n.project(t, pod, &volume.Projected.Sources[i], folder)
			}
		default:
			t.Fatalf("the volume %s is of a kind that is not known here", name)
		}
		return
	}
	t.Fatalf("the pod has no volume %s", name)
}

// project writes the files of one source of a projected volume. The API server adds such a volume to each pod, for its
// ServiceAccount.
func (n *node) project(t *testing.T, pod *corev1.Pod, source *corev1.VolumeProjection, folder string) {
	t.Helper()
	switch {
	case source.ServiceAccountToken != nil:
		write(t, folder, source.ServiceAccountToken.Path, []byte(n.token(t, pod, source.ServiceAccountToken)))
	case source.ConfigMap != nil:
		m := &corev1.ConfigMap{}
		n.read(t, pod, source.ConfigMap.Name, m)
		for _, item := range source.ConfigMap.Items {
			write(t, folder, item.Path, []byte(m.Data[item.Key]))
		}
	case source.DownwardAPI != nil:
		for _, item := range source.DownwardAPI.Items {
			write(t, folder, item.Path, []byte(field(t, pod, item.FieldRef.FieldPath)))
		}
	default:
		t.Fatal("the source of a projected volume is of a kind that is not known here")
	}
}

// token requests a token that is valid while the pod exists.
func (n *node) token(t *testing.T, pod *corev1.Pod, projection *corev1.ServiceAccountTokenProjection) string {
	t.Helper()
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = pod.Namespace, pod.Spec.ServiceAccountName
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: projection.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	require.NoError(t, n.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

func (n *node) read(t *testing.T, pod *corev1.Pod, name string, obj client.Object) {
	t.Helper()
	obj.SetNamespace(pod.Namespace)
	obj.SetName(name)
	operatortest.Live(t, n, obj)
}

func write(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o644))
}

// field returns the value of a field of a pod.
func field(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	fields := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": pod.Spec.NodeName, "spec.serviceAccountName": pod.Spec.ServiceAccountName, "status.podIP": pod.Status.PodIP,
	}
	value, ok := fields[path]
	require.True(t, ok, "the field %s is not known here", path)
	return value
}
