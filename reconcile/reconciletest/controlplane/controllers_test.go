package controlplane_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const readyReplicas = "jsonpath={.status.readyReplicas}/{.status.replicas}"

func TestDeployment(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "create", "deployment", "web", "--image=web:1", "--replicas=2")
	kubectl(t, cp, namespace, "rollout", "status", "deployment/web", "--timeout=5m")
	assert.Equal(t, "2/2", kubectl(t, cp, namespace, "get", "deployment/web", "-o", readyReplicas))

	kubectl(t, cp, namespace, "set", "image", "deployment/web", "web=web:2")
	kubectl(t, cp, namespace, "scale", "deployment/web", "--replicas=4")
	kubectl(t, cp, namespace, "rollout", "status", "deployment/web", "--timeout=5m")
	assert.Equal(t, "4/4", kubectl(t, cp, namespace, "get", "deployment/web", "-o", readyReplicas))

	kubectl(t, cp, namespace, "delete", "deployment/web")
	c := newClient(t, cp)
	eventually(t, "the pods are gone", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := c.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) == 0, err
	})
}

func TestStatefulSet(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "apply", "-f", "testdata/statefulset.yaml")
	kubectl(t, cp, namespace, "rollout", "status", "statefulset/database", "--timeout=5m")
	assert.Equal(t, "Bound Bound", kubectl(t, cp, namespace, "get", "pvc", "-o", "jsonpath={.items[*].status.phase}"))

	kubectl(t, cp, namespace, "delete", "statefulset/database")
	kubectl(t, cp, namespace, "delete", "pvc", "--all", "--timeout=5m")
	kubectl(t, cp, namespace, "wait", "--for=delete", "pv", "--all", "--timeout=5m")
}

func TestVolumesMayGrow(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "apply", "-f", "testdata/statefulset.yaml")
	kubectl(t, cp, namespace, "rollout", "status", "statefulset/database", "--timeout=5m")
	kubectl(t, cp, namespace, "patch", "pvc/data-database-0", "--patch", `{"spec": {"resources": {"requests": {"storage": "9Gi"}}}}`)
	assert.Equal(t, "9Gi", kubectl(t, cp, namespace, "get", "pvc/data-database-0", "-o", "jsonpath={.spec.resources.requests.storage}"))
}

func TestJob(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "create", "job", "backup", "--image=backup")
	kubectl(t, cp, namespace, "wait", "--for=condition=complete", "job/backup", "--timeout=5m")
}

func TestUnpullableImage(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "create", "deployment", "web", "--image=registry.invalid/web", "--replicas=1")
	kubectl(t, cp, namespace, "wait", "pod", "-l", "app=web", "--timeout=5m",
		"--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff")

	kubectl(t, cp, namespace, "set", "image", "deployment/web", "web=registry.example/web")
	kubectl(t, cp, namespace, "rollout", "status", "deployment/web", "--timeout=5m")
}

func TestHoldAnnotation(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "run", "held", "--image=web", "--annotations="+controlplane.HoldAnnotation+"=")
	kubectl(t, cp, namespace, "run", "other", "--image=web")
	kubectl(t, cp, namespace, "wait", "--for=condition=Ready", "pod/other", "--timeout=5m")
	kubectl(t, cp, namespace, "wait", "--for=condition=PodScheduled", "pod/held", "--timeout=5m")
	assert.Equal(t, "Pending", kubectl(t, cp, namespace, "get", "pod/held", "-o", "jsonpath={.status.phase}"))

	kubectl(t, cp, namespace, "annotate", "pod/held", controlplane.HoldAnnotation+"-")
	kubectl(t, cp, namespace, "wait", "--for=condition=Ready", "pod/held", "--timeout=5m")
}

func TestPodStatusIsKept(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	kubectl(t, cp, namespace, "run", "web", "--image=web")
	kubectl(t, cp, namespace, "wait", "--for=condition=Ready", "pod/web", "--timeout=5m")
	kubectl(t, cp, namespace, "patch", "pod/web", "--subresource=status", "--patch",
		`{"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}}`)

	// kwok handles the events of a node's pods in order: once a later pod is ready, it has seen the patch.
	kubectl(t, cp, namespace, "run", "later", "--image=web")
	kubectl(t, cp, namespace, "wait", "--for=condition=Ready", "pod/later", "--timeout=5m")
	assert.Equal(t, "Pending", kubectl(t, cp, namespace, "get", "pod/web", "-o", "jsonpath={.status.phase}"))
}

func TestServiceRange(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	c := newClient(t, cp)
	for range 300 {
		service := &corev1.Service{}
		service.GenerateName, service.Namespace = "service-", namespace
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		require.NoError(t, c.Create(t.Context(), service))
	}
}
