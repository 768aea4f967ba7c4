package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestLifecycle runs the sample of the tutorial from creation to deletion, with the commands of a user, and with each
// option of the manager.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	operatortest.EachManagerOption(t, testLifecycle)
}

func testLifecycle(t *testing.T, options ctrl.Options) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), u.ElectLeader(options), u.Namespace)
	kubectl := func(args ...string) string { return u.Kubectl(t, args...) }
	const resource = "apps.app.huolala.cn"

	kubectl("create", "--filename", sampleFile)
	app := u.settled(t, sampleName, corev1.ConditionTrue)
	assert.EqualValues(t, 2, app.Status.ReadyReplicas)
	assert.EqualValues(t, 2, app.Status.AvailableReplicas)
	assert.EqualValues(t, 2, app.Status.UpdatedReplicas)
	assert.Equal(t, sampleName+"."+u.Namespace+".svc:8080", app.Status.Endpoint)
	assert.Equal(t, "app.example.com/v1="+sampleName, app.Status.Selector)
	for _, conditionType := range []string{"Available", "Progressing", "ServiceReady", conditions.Ready} {
		assert.True(t, controller.Conditions.IsTrue(app.Status.Conditions, conditionType), conditionType)
	}
	assert.Equal(t, []string{"NAME", "IMAGE", "DESIRED", "READY", "AVAILABLE", "REASON", "AGE",
		sampleName, "nginx:1.16.1", "2", "2", "2", "Succeeded"}, strings.Fields(kubectl("get", resource))[:13])
	assert.Equal(t, 2, strings.Count(kubectl("get", "pods"), "Running"))
	service := strings.Fields(kubectl("get", "service", sampleName, "--no-headers"))
	assert.Equal(t, "ClusterIP", service[1])
	assert.NotEqual(t, "None", service[2])
	assert.Equal(t, "8080/TCP", service[4])
	container := operatortest.Live(t, u, u.Deployment(sampleName)).Spec.Template.Spec.Containers[0]
	assert.Equal(t, []corev1.EnvVar{{Name: "DEMO", Value: "app"}, {Name: "GOPATH", Value: "gopath"}}, container.Env)
	assert.Equal(t, "500m 500Mi", container.Resources.Limits.Cpu().String()+" "+container.Resources.Limits.Memory().String())
	assert.Equal(t, "100m 100Mi", container.Resources.Requests.Cpu().String()+" "+container.Resources.Requests.Memory().String())

	kubectl("scale", resource+"/"+sampleName, "--replicas=3")
	app = u.settled(t, sampleName, corev1.ConditionTrue)
	assert.EqualValues(t, 3, app.Status.ReadyReplicas)
	assert.EqualValues(t, 3, *app.Spec.Replicas)
	assert.EqualValues(t, 2, app.Status.ObservedGeneration)
	assert.Equal(t, "3 app.example.com/v1="+sampleName,
		kubectl("get", resource, sampleName, "--output=jsonpath={.status.replicas} {.status.selector}"))

	kubectl("delete", resource, sampleName)
	u.Gone(t, u.Deployment(sampleName), u.Service(sampleName))
	operatortest.Eventually(t, "nothing is left", func(c *assert.CollectT) {
		assert.Empty(c, strings.TrimSpace(kubectl("get", "deployments,replicasets,pods,services", "--output=name")))
	})
}

// TestChildren checks the children as a real API server stores them.
func TestChildren(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web", func(s *appv1.AppSpec) {
		s.ServiceAccountName = "default"
		s.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
		s.EnvFrom = []corev1.EnvFromSource{{Prefix: "X_", ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Optional: new(true)}}}
		s.PodSecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(101))}
		s.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
	})
	u.settled(t, app.Name, corev1.ConditionTrue)

	d := operatortest.Live(t, u, u.Deployment(app.Name))
	assert.True(t, metav1.IsControlledBy(d, app))
	selector := map[string]string{"app.example.com/v1": app.Name}
	assert.Equal(t, selector, d.Spec.Selector.MatchLabels)
	assert.Equal(t, selector, d.Spec.Template.Labels, "labels that may change belong to metadata only: in the template they would roll the pods")
	for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"} {
		assert.Contains(t, d.Labels, label)
	}
	assert.Empty(t, d.Spec.Template.Annotations)
	pod := d.Spec.Template.Spec
	assert.Equal(t, &corev1.PodSecurityContext{RunAsUser: new(int64(101))}, pod.SecurityContext)
	assert.Equal(t, "default", pod.ServiceAccountName)
	container := pod.Containers[0]
	assert.Equal(t, &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}, container.SecurityContext)
	assert.Equal(t, app.Name, container.Name)
	assert.Equal(t, corev1.PullIfNotPresent, container.ImagePullPolicy)
	assert.NotNil(t, container.ReadinessProbe)
	assert.Equal(t, app.Spec.EnvFrom, container.EnvFrom)

	s := operatortest.Live(t, u, u.Service(app.Name))
	assert.True(t, metav1.IsControlledBy(s, app))
	assert.Equal(t, selector, s.Spec.Selector)
	operatortest.Eventually(t, "the Service finds the pods", func(c *assert.CollectT) {
		assert.Len(c, u.Endpoints(c, app.Name), 1)
	})

	// What is not wanted any more goes.
	u.set(t, app.Name, func(s *appv1.AppSpec) {
		s.ServiceAccountName, s.ReadinessProbe, s.EnvFrom, s.PodSecurityContext, s.SecurityContext = "", nil, nil, nil, nil
	})
	u.settled(t, app.Name, corev1.ConditionTrue)
	pod = operatortest.Live(t, u, d).Spec.Template.Spec
	assert.Equal(t, &corev1.PodSecurityContext{}, pod.SecurityContext, "the API server's default")
	assert.Empty(t, pod.ServiceAccountName)
	assert.Nil(t, pod.Containers[0].SecurityContext)
	assert.Nil(t, pod.Containers[0].ReadinessProbe)
	assert.Empty(t, pod.Containers[0].EnvFrom)
}

// TestChildrenComeAndGo changes a spec with and without ports and minAvailable.
func TestChildrenComeAndGo(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web", func(s *appv1.AppSpec) { s.Ports, s.Replicas = nil, new(int32(2)) })
	app = u.settled(t, app.Name, corev1.ConditionTrue)
	assert.Empty(t, app.Status.Endpoint)
	u.Gone(t, u.Service(app.Name), u.budget(app.Name))

	u.set(t, app.Name, func(s *appv1.AppSpec) {
		s.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}, {Port: 53}}
		s.MinAvailable = new(intstr.FromInt32(1))
	})
	app = u.settled(t, app.Name, corev1.ConditionTrue)
	assert.Equal(t, "web."+u.Namespace+".svc:53", app.Status.Endpoint)
	assert.Len(t, operatortest.Live(t, u, u.Service(app.Name)).Spec.Ports, 2)
	budget := operatortest.Live(t, u, u.budget(app.Name))
	assert.Equal(t, "1", budget.Spec.MinAvailable.String())
	assert.True(t, metav1.IsControlledBy(budget, app))
	operatortest.Eventually(t, "one of two may go", func(c *assert.CollectT) {
		assert.EqualValues(c, 1, operatortest.Live(c, u, budget).Status.DisruptionsAllowed)
	})

	u.set(t, app.Name, func(s *appv1.AppSpec) { s.Ports, s.MinAvailable = s.Ports[:1], new(intstr.FromString("50%")) })
	u.settled(t, app.Name, corev1.ConditionTrue)
	assert.Len(t, operatortest.Live(t, u, u.Service(app.Name)).Spec.Ports, 1)
	assert.Equal(t, "50%", operatortest.Live(t, u, budget).Spec.MinAvailable.String())

	// Also when nobody looked while the spec changed.
	o.Stop()
	u.set(t, app.Name, func(s *appv1.AppSpec) { s.Ports, s.MinAvailable = nil, nil })
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.Gone(t, u.Service(app.Name), u.budget(app.Name))
	app = u.settled(t, app.Name, corev1.ConditionTrue)
	assert.Empty(t, app.Status.Endpoint)
	assert.Empty(t, operatortest.Live(t, u, u.Deployment(app.Name)).Spec.Template.Spec.Containers[0].Ports)
}
