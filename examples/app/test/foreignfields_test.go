package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestOthersFieldsSurvive checks that an update of the App keeps the fields of the Deployment that others set.
func TestOthersFieldsSurvive(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web")
	u.settled(t, app.Name, corev1.ConditionTrue)

	u.Kubectl(t, "rollout", "restart", "deployment/web")
	u.Kubectl(t, "annotate", "deployment/web", "team=blue")
	operatortest.Change(t, u, u.Deployment(app.Name), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar"})
	})
	for _, image := range []string{"nginx:1.17", "nginx:1.18"} { // the first write after the creation migrates the ownership of the fields
		u.set(t, app.Name, func(s *appv1.AppSpec) { s.Image = image })
		u.settled(t, app.Name, corev1.ConditionTrue)
		d := operatortest.Live(t, u, u.Deployment(app.Name))
		assert.Equal(t, image, d.Spec.Template.Spec.Containers[0].Image)
		assert.Equal(t, "blue", d.Annotations["team"])
		assert.Contains(t, d.Spec.Template.Annotations, "kubectl.kubernetes.io/restartedAt")
		assert.Len(t, d.Spec.Template.Spec.Containers, 2)
	}
}

// TestAutoscaler checks that an autoscaler may set the replicas if the spec has none, and that removing them keeps the number.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	replicas := func(name string) int32 {
		t.Helper()
		u.settled(t, name, corev1.ConditionTrue)
		return *operatortest.Live(t, u, u.Deployment(name)).Spec.Replicas
	}
	autoscale := func(name, to string) {
		t.Helper()
		u.Kubectl(t, "scale", "deployment/"+name, "--replicas="+to)
	}
	images := []string{"nginx:1.17", "nginx:1.18"}

	u.create(t, "unset", func(s *appv1.AppSpec) { s.Replicas = nil })
	assert.EqualValues(t, 1, replicas("unset"))
	autoscale("unset", "3")
	for _, image := range images {
		u.set(t, "unset", func(s *appv1.AppSpec) { s.Image = image })
		assert.EqualValues(t, 3, replicas("unset"))
	}

	for name, earlier := range map[string]func(){
		"just-created": func() {},
		"applied":      func() { u.set(t, "applied", func(s *appv1.AppSpec) { s.Image = "nginx:1.17" }) },
	} {
		t.Run(name, func(t *testing.T) {
			u.create(t, name, func(s *appv1.AppSpec) { s.Replicas = new(int32(3)) })
			u.settled(t, name, corev1.ConditionTrue)
			earlier()
			assert.EqualValues(t, 3, replicas(name))
			u.set(t, name, func(s *appv1.AppSpec) { s.Replicas = nil })
			assert.EqualValues(t, 3, replicas(name))
			autoscale(name, "4")
			u.set(t, name, func(s *appv1.AppSpec) { s.Image = "nginx:1.18" })
			assert.EqualValues(t, 4, replicas(name))
			u.set(t, name, func(s *appv1.AppSpec) { s.Replicas = new(int32(2)) })
			assert.EqualValues(t, 2, replicas(name))
		})
	}
}

// TestServiceKeeps checks that fields of a Service stay that the API server and others set.
func TestServiceKeeps(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web", func(s *appv1.AppSpec) { s.ServiceType = corev1.ServiceTypeLoadBalancer })
	u.condition(t, app.Name, "ServiceReady", "NoAddress")
	s := u.Service(app.Name)
	operatortest.Change(t, u, s, func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "cloud.example.com/balancer", "b-1")
	})
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	require.NoError(t, u.Status().Update(t.Context(), s))
	require.NotZero(t, s.Spec.HealthCheckNodePort)
	u.settled(t, app.Name, corev1.ConditionTrue)

	for i, edit := range []func(*appv1.AppSpec){
		func(s *appv1.AppSpec) { s.Ports[0].TargetPort = intstr.FromInt32(81) },
		func(s *appv1.AppSpec) { s.Ports = append(s.Ports, corev1.ServicePort{Name: "admin", Port: 9090}) }, // names the first
		func(s *appv1.AppSpec) { s.Ports = s.Ports[:1] },
	} {
		u.set(t, app.Name, edit)
		u.settled(t, app.Name, corev1.ConditionTrue)
		now := operatortest.Live(t, u, u.Service(app.Name))
		assert.NotEqual(t, s.ResourceVersion, now.ResourceVersion, "it was written to")
		assert.Equal(t, s.UID, now.UID)
		assert.Equal(t, s.Spec.ClusterIP, now.Spec.ClusterIP)
		assert.Equal(t, s.Spec.ClusterIPs, now.Spec.ClusterIPs)
		assert.Equal(t, s.Spec.Ports[0].NodePort, now.Spec.Ports[0].NodePort)
		assert.Equal(t, s.Spec.HealthCheckNodePort, now.Spec.HealthCheckNodePort)
		assert.Equal(t, s.Spec.ExternalTrafficPolicy, now.Spec.ExternalTrafficPolicy)
		assert.Equal(t, s.Spec.LoadBalancerSourceRanges, now.Spec.LoadBalancerSourceRanges)
		assert.Equal(t, s.Status.LoadBalancer, now.Status.LoadBalancer)
		assert.Equal(t, "b-1", now.Annotations["cloud.example.com/balancer"])
		assert.Equal(t, []int{1, 2, 1}[i], len(now.Spec.Ports))
		assert.EqualValues(t, 81, now.Spec.Ports[0].TargetPort.IntVal)
	}
}

func TestServiceType(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web")
	u.settled(t, app.Name, corev1.ConditionTrue)
	before := operatortest.Live(t, u, u.Service(app.Name))
	assert.Equal(t, corev1.ServiceTypeClusterIP, before.Spec.Type)
	for _, want := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, ""} {
		u.set(t, app.Name, func(s *appv1.AppSpec) { s.ServiceType = want })
		if want == corev1.ServiceTypeLoadBalancer { // no cloud provider gives it an address
			u.condition(t, app.Name, "ServiceReady", "NoAddress")
		} else {
			u.settled(t, app.Name, corev1.ConditionTrue)
		}
		now := operatortest.Live(t, u, u.Service(app.Name))
		assert.Equal(t, before.Spec.ClusterIP, now.Spec.ClusterIP)
		if want == "" {
			assert.Equal(t, corev1.ServiceTypeClusterIP, now.Spec.Type)
			assert.Zero(t, now.Spec.Ports[0].NodePort)
		} else {
			assert.Equal(t, want, now.Spec.Type)
			assert.NotZero(t, now.Spec.Ports[0].NodePort)
		}
	}
}
