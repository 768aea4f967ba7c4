package test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestCreationFailsOnce: the tutorial's operator fails for ever after the creation of the Service has failed once.
func TestCreationFailsOnce(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]func(client.Object) bool{
		"Service":    func(obj client.Object) bool { _, ok := obj.(*corev1.Service); return ok },
		"Deployment": func(obj client.Object) bool { _, ok := obj.(*appsv1.Deployment); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, cluster(t))
			failed := make(chan struct{}, 1)
			startOperator(t, u.ControlPlane.Config(), ctrl.Options{NewClient: operatortest.Intercept(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if is(obj) {
						select {
						case failed <- struct{}{}:
							return errors.New("connection refused")
						default:
						}
					}
					return c.Create(ctx, obj, opts...)
				},
			})}, u.Namespace)
			u.create(t, "web")
			u.settled(t, "web", corev1.ConditionTrue)
			assert.Len(t, failed, 1)
			operatortest.Live(t, u, u.Service("web"))
		})
	}
}

// TestAnnotationIsLost: the tutorial's operator fails for ever without its annotation of what it applied.
func TestAnnotationIsLost(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web")
	app := u.settled(t, "web", corev1.ConditionTrue)
	assert.Empty(t, app.Annotations, "it is on the children")
	for _, child := range []client.Object{u.Deployment("web"), u.Service("web")} {
		want := operatortest.Live(t, u, child).GetAnnotations()["opblocks.dev/applied"]
		require.NotEmpty(t, want)
		operatortest.Change(t, u, child, func(obj client.Object) {
			annotations := obj.GetAnnotations()
			delete(annotations, "opblocks.dev/applied")
			obj.SetAnnotations(annotations)
		})
		operatortest.Eventually(t, "it is back", func(c *assert.CollectT) {
			assert.Contains(c, operatortest.Live(c, u, child).GetAnnotations(), "opblocks.dev/applied")
		})
	}
	u.set(t, "web", func(s *appv1.AppSpec) { s.Replicas = new(int32(2)) })
	u.settled(t, "web", corev1.ConditionTrue)
	assert.EqualValues(t, 2, *operatortest.Live(t, u, u.Deployment("web")).Spec.Replicas)
}

// TestDriftIsRepairedAtOnce: the tutorial's operator watches only Apps.
func TestDriftIsRepairedAtOnce(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web", func(s *appv1.AppSpec) {
		s.Envs = []corev1.EnvVar{{Name: "DEMO", Value: "app"}, {Name: "GOPATH", Value: "gopath"}}
		s.MinAvailable = new(intstr.FromInt32(0))
	})
	u.settled(t, app.Name, corev1.ConditionTrue)
	d, s := operatortest.Live(t, u, u.Deployment(app.Name)), operatortest.Live(t, u, u.Service(app.Name))
	original, originalService := d.DeepCopy(), s.DeepCopy()

	for name, edit := range map[string]func(*appsv1.Deployment){
		"replicas":  func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) },
		"image":     func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:1.0" },
		"env":       func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env = nil },
		"port":      func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports = nil },
		"label":     func(d *appsv1.Deployment) { delete(d.Labels, "app.kubernetes.io/name") },
		"reference": func(d *appsv1.Deployment) { d.OwnerReferences[0].BlockOwnerDeletion = nil },
	} {
		t.Run(name, func(t *testing.T) {
			operatortest.Change(t, u, d, edit)
			operatortest.Eventually(t, "the Deployment is as before", func(c *assert.CollectT) {
				assert.Equal(c, original.Spec, operatortest.Live(c, u, d).Spec)
				assert.Equal(c, original.Labels, d.Labels)
				assert.Equal(c, original.OwnerReferences, d.OwnerReferences)
			})
		})
	}
	t.Run("service", func(t *testing.T) {
		operatortest.Change(t, u, s, func(s *corev1.Service) { s.Spec.Ports[0].TargetPort, s.Spec.Selector = intstr.FromInt32(81), nil })
		operatortest.Eventually(t, "the Service is as before", func(c *assert.CollectT) {
			assert.Equal(c, originalService.Spec, operatortest.Live(c, u, s).Spec)
		})
	})
	for name, child := range map[string]client.Object{
		"Deployment": u.Deployment(app.Name), "Service": u.Service(app.Name), "PodDisruptionBudget": u.budget(app.Name),
	} {
		t.Run(name+" deleted", func(t *testing.T) { u.DeleteAndAwaitNew(t, child) })
	}
	u.settled(t, app.Name, corev1.ConditionTrue)
}

// TestServiceMissingAtUpdate: the tutorial's operator fails for ever if the Service is missing at an update.
func TestServiceMissingAtUpdate(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web")
	u.settled(t, app.Name, corev1.ConditionTrue)
	o.Stop()
	require.NoError(t, u.Delete(t.Context(), u.Service(app.Name)))
	u.set(t, app.Name, func(s *appv1.AppSpec) { s.Image, s.Ports[0].Port = "nginx:1.17", 8081 })
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app = u.settled(t, app.Name, corev1.ConditionTrue)
	assert.EqualValues(t, 8081, operatortest.Live(t, u, u.Service(app.Name)).Spec.Ports[0].Port)
	assert.Equal(t, "web."+u.Namespace+".svc:8081", app.Status.Endpoint)
}

// TestContainerPorts: the tutorial's operator opens port 0 for a named or unset targetPort, and loses the protocol.
func TestContainerPorts(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	app := u.create(t, "web", func(s *appv1.AppSpec) {
		s.Ports = []corev1.ServicePort{
			{Port: 8080, TargetPort: intstr.FromInt32(80)},
			{Port: 9090, TargetPort: intstr.FromInt32(80)}, // the same again
			{Port: 443, TargetPort: intstr.FromString("https")},
			{Port: 53, Protocol: corev1.ProtocolUDP},
			{Port: 53, Name: "dns"},
		}
	})
	u.settled(t, app.Name, corev1.ConditionTrue)
	assert.Equal(t, []corev1.ContainerPort{
		{ContainerPort: 80, Protocol: corev1.ProtocolTCP},
		{ContainerPort: 443, Protocol: corev1.ProtocolTCP, Name: "https"},
		{ContainerPort: 53, Protocol: corev1.ProtocolUDP},
		{ContainerPort: 53, Protocol: corev1.ProtocolTCP},
	}, operatortest.Live(t, u, u.Deployment(app.Name)).Spec.Template.Spec.Containers[0].Ports)
	var names []string
	for _, p := range operatortest.Live(t, u, u.Service(app.Name)).Spec.Ports {
		names = append(names, p.Name+"→"+p.TargetPort.String())
	}
	assert.Equal(t, []string{"tcp-8080→80", "tcp-9090→80", "tcp-443→https", "udp-53→53", "dns→53"}, names)
}

// TestCreatedIsNotReady: the tutorial's operator does not read the status of the Deployment.
func TestCreatedIsNotReady(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t)) // where no pod ever comes
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web")
	app := u.settled(t, "web", corev1.ConditionFalse)
	assert.Equal(t, "LessReplicas", u.condition(t, "web", conditions.Reconciling, "LessReplicas").Reason)
	assert.Zero(t, app.Status.Replicas)
}

// TestTakeOver starts the operator on children of the tutorial's operator: it takes them over without replacing pods.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	app := u.create(t, "web", func(s *appv1.AppSpec) {
		s.Replicas = new(int32(2))
		s.Envs = []corev1.EnvVar{{Name: "PASSWORD", Value: "canary"}}
	})
	createTutorialChildren(t, u, app)
	operatortest.Eventually(t, "its pods run", func(c *assert.CollectT) {
		assert.EqualValues(c, 2, operatortest.Live(c, u, u.Deployment(app.Name)).Status.ReadyReplicas)
	})
	before, service := operatortest.Live(t, u, u.Deployment(app.Name)), operatortest.Live(t, u, u.Service(app.Name))

	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.settled(t, app.Name, corev1.ConditionTrue)
	operatortest.Eventually(t, "the annotation is gone", func(c *assert.CollectT) {
		assert.Equal(c, map[string]string{"team": "blue"}, operatortest.Live(c, u, app).Annotations)
	})
	assert.Equal(t, 1, o.Requests.Take()["PATCH apps"], "once is enough")
	d := operatortest.Live(t, u, u.Deployment(app.Name))
	assert.Equal(t, before.UID, d.UID, "it was not made anew")
	assert.Equal(t, 1, u.rollouts(t, app.Name), "nor its pods")
	assert.Equal(t, service.Spec.ClusterIP, operatortest.Live(t, u, service).Spec.ClusterIP)
	for _, child := range []client.Object{d, service} {
		for _, entry := range child.GetManagedFields() {
			assert.NotEqual(t, "manager", entry.Manager)
		}
	}

	// What the former operator had set can be taken away.
	u.set(t, app.Name, func(s *appv1.AppSpec) { s.Envs, s.Replicas = nil, nil })
	u.settled(t, app.Name, corev1.ConditionTrue)
	d = operatortest.Live(t, u, d)
	assert.Empty(t, d.Spec.Template.Spec.Containers[0].Env)
	assert.EqualValues(t, 2, *d.Spec.Replicas)
	u.set(t, app.Name, func(s *appv1.AppSpec) { s.Ports = nil })
	u.Gone(t, service)
	u.settled(t, app.Name, corev1.ConditionTrue)
	assert.Empty(t, operatortest.Live(t, u, d).Spec.Template.Spec.Containers[0].Ports)
}

// createTutorialChildren creates the children that the tutorial's operator creates.
func createTutorialChildren(t *testing.T, u *user, app *appv1.App) {
	t.Helper()
	selector := map[string]string{"app.example.com/v1": app.Name}
	d := u.Deployment(app.Name)
	d.Spec = appsv1.DeploymentSpec{
		Replicas: app.Spec.Replicas,
		Selector: &metav1.LabelSelector{MatchLabels: selector},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: selector},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name:            app.Name,
				Image:           app.Spec.Image,
				Resources:       app.Spec.Resources.Core(),
				Ports:           []corev1.ContainerPort{{ContainerPort: app.Spec.Ports[0].TargetPort.IntVal}},
				ImagePullPolicy: corev1.PullIfNotPresent,
				Env:             app.Spec.Envs,
			}}},
		},
	}
	s := u.Service(app.Name)
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: app.Spec.Ports, Selector: selector}
	for _, child := range []client.Object{d, s} {
		require.NoError(t, ctrl.SetControllerReference(app, child, u.Scheme()))
		require.NoError(t, u.Create(t.Context(), child, client.FieldOwner("manager")))
	}
	spec, err := json.Marshal(app.Spec)
	require.NoError(t, err)
	operatortest.Change(t, u, app, func(app *appv1.App) { app.Annotations = map[string]string{"spec": string(spec), "team": "blue"} })
}

// TestQuietWhenConverged: the tutorial's operator compares with reflect.DeepEqual, and writes because of the API server's
// defaults.
func TestQuietWhenConverged(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "web", func(s *appv1.AppSpec) { s.ReadinessProbe = &corev1.Probe{} }, func(s *appv1.AppSpec) {
		s.ReadinessProbe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}
	})
	u.settled(t, "web", corev1.ConditionTrue)
	o.Pass(t, u, u.app("web"))
	o.Requests.Take()
	for i := range 5 { // each event of a child is a pass
		o.PassAfter(t, u.app("web"), func() {
			for _, child := range []client.Object{u.Deployment("web"), u.Service("web")} {
				operatortest.Change(t, u, child, func(obj client.Object) {
					labels := obj.GetLabels() // an annotation would give a Deployment another generation
					labels["example.com/touched"] = strconv.Itoa(i)
					obj.SetLabels(labels)
				})
			}
		})
	}
	assert.Empty(t, o.Requests.Take())
}
