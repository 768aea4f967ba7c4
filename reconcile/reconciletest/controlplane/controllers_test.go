package controlplane_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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

	// kwok handles the events of a node's pods in order: when a later pod is ready, kwok has seen the patch.
	kubectl(t, cp, namespace, "run", "later", "--image=web")
	kubectl(t, cp, namespace, "wait", "--for=condition=Ready", "pod/later", "--timeout=5m")
	assert.Equal(t, "Pending", kubectl(t, cp, namespace, "get", "pod/web", "-o", "jsonpath={.status.phase}"))
}

func TestPauseControllers(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	c, err := client.New(cp.Config(), client.Options{Scheme: withCRDs(t)})
	require.NoError(t, err)
	pause(t, cp)
	require.NoError(t, cp.PauseControllers(), "they are paused already")
	_, err = cp.CreateNamespace(t.Context(), "paused-")
	require.EqualError(t, err, "create a namespace: kube-controller-manager is paused: call ResumeControllers first")

	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	web.Namespace, web.Name = namespace, "web"
	web.Spec.Template.Labels = labels
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	unscheduled := &corev1.Pod{Spec: web.Spec.Template.Spec}
	unscheduled.Namespace, unscheduled.Name = namespace, "unscheduled"
	scheduled := unscheduled.DeepCopy()
	scheduled.Name, scheduled.Spec.NodeName = "scheduled", "node-1"
	for _, obj := range []client.Object{web, unscheduled, scheduled} {
		require.NoError(t, c.Create(t.Context(), obj))
	}
	awaitEstablished(t, c)

	refresh := func(objects ...client.Object) {
		for _, obj := range objects {
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
		}
	}
	refresh(web, unscheduled, scheduled)
	assert.Zero(t, web.Status, "kube-controller-manager")
	assert.Empty(t, unscheduled.Spec.NodeName, "kube-scheduler")
	assert.Equal(t, corev1.PodPending, scheduled.Status.Phase, "kwok")

	require.NoError(t, cp.ResumeControllers())
	require.NoError(t, cp.ResumeControllers(), "they run already")
	require.Empty(t, stopped(t, cp))
	eventually(t, "everything is ready", func(context.Context) (bool, error) {
		refresh(web, unscheduled, scheduled)
		return web.Status.AvailableReplicas == 1 && unscheduled.Status.Phase == corev1.PodRunning && scheduled.Status.Phase == corev1.PodRunning, nil
	})
}

// awaitEstablished creates a CustomResourceDefinition, and waits until the API server has established it. A controller needs less time than
// this for a new object.
func awaitEstablished(t *testing.T, c client.Client) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "paused.example.com",
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gears", Kind: "Gear"},
		Scope: apiextensionsv1.NamespaceScoped,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
		}}},
	}}
	crd.Name = "gears.paused.example.com"
	require.NoError(t, c.Create(t.Context(), crd))
	t.Cleanup(func() { require.NoError(t, c.Delete(context.Background(), crd)) })
	eventually(t, "the kind is established", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		return slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
		}), err
	})
}

func withCRDs(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// pause pauses the controllers until the test ends, and checks that their processes have stopped.
func pause(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	require.Empty(t, stopped(t, cp))
	require.NoError(t, cp.PauseControllers())
	t.Cleanup(func() { require.NoError(t, cp.ResumeControllers()) })
	require.Len(t, stopped(t, cp), 3)
}

// stopped returns the processes of a control plane that are stopped by a signal.
func stopped(t *testing.T, cp *controlplane.ControlPlane) []string {
	t.Helper()
	return slices.DeleteFunc(processesIn(t, filepath.Dir(cp.Kubeconfig())), func(pid string) bool {
		state, err := exec.Command("ps", "-o", "state=", "-p", pid).Output()
		require.NoError(t, err)
		return !strings.HasPrefix(string(state), "T")
	})
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
