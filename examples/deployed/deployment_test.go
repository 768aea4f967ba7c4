//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// deployment is an operator in the cluster.
type deployment struct {
	*appsv1.Deployment
	objects []*unstructured.Unstructured // all that was applied
	pods    []*corev1.Pod
}

// deploy applies an overlay of an example's configuration as `make deploy` does, and waits for the pods, which simulated nodes
// run. Its objects that are in a namespace are deleted when the test ends. If namespace is not empty, they are in this one, which
// exists. The text more is added to the kustomization.
func (n *node) deploy(t *testing.T, example, overlay, namespace, more string, prepare func(namespace string)) *deployment {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	config, err := filepath.Abs(filepath.Join("..", example, "config", overlay))
	require.NoError(t, err)
	if config, err = filepath.EvalSymlinks(config); err == nil {
		config, err = filepath.Rel(folder, config)
	}
	require.NoError(t, err)
	kustomization := fmt.Sprintf("resources: [%s]\nimages: [{name: controller, newName: registry.example.com/%s-operator, newTag: v1}]\n%s", config, example, more)
	if namespace != "" {
		kustomization += "namespace: " + namespace + "\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600))

	kubectl := func(args ...string) string {
		out, err := n.cp.Kubectl(t.Context(), args...)
		require.NoError(t, err)
		return out
	}
	d := &deployment{Deployment: &appsv1.Deployment{}, objects: decode(t, kubectl("kustomize", folder))}
	kubectl("apply", "--server-side", "--force-conflicts", "--kustomize", folder) // the CRDs were created by the control plane
	for _, obj := range d.find("Deployment") {
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d.Deployment))
	}
	prepare(d.Namespace)
	d.pods = n.await(t, d)
	t.Cleanup(func() { n.undeploy(t, d) })
	return d
}

// decode returns the objects of a text in YAML.
func decode(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		objects = append(objects, obj)
	}
}

// find returns the objects of a kind.
func (d *deployment) find(kind string) (objects []*unstructured.Unstructured) {
	for _, obj := range d.objects {
		if obj.GetKind() == kind {
			objects = append(objects, obj)
		}
	}
	return objects
}

// await waits until the pods of a Deployment are ready, and returns them.
func (n *node) await(t *testing.T, d *deployment) (pods []*corev1.Pod) {
	t.Helper()
	operatortest.Eventually(t, "the pods of "+d.Name+" are ready", func(c *assert.CollectT) {
		operatortest.Live(c, n, d.Deployment)
		assert.Equal(c, *d.Spec.Replicas, d.Status.ReadyReplicas)
	})
	list := n.podsOf(t, d)
	for i := range list {
		pods = append(pods, &list[i])
	}
	require.Len(t, pods, int(*d.Spec.Replicas))
	return pods
}

func (n *node) podsOf(t require.TestingT, d *deployment) []corev1.Pod {
	var list corev1.PodList
	require.NoError(t, n.List(context.Background(), &list, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)))
	return list.Items
}

// undeploy deletes the Deployment and all others that are in its namespace.
func (n *node) undeploy(t *testing.T, d *deployment) {
	t.Helper()
	for _, obj := range d.objects {
		if obj.GetNamespace() == d.Namespace {
			assert.NoError(t, client.IgnoreNotFound(n.Delete(context.Background(), obj, client.PropagationPolicy("Background"))))
		}
	}
	operatortest.Eventually(t, "the pods are gone", func(c *assert.CollectT) { assert.Empty(c, n.podsOf(c, d)) })
}
