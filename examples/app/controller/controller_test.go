package controller_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/reconcile"
)

// harness is the reconciler with controller-runtime's fake client. It counts writes. A pass sends several at once.
type harness struct {
	client.Client
	reconciler *reconcile.Reconciler[*appv1.App]
	writes     atomic.Int64
}

func newHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, appv1.AddToScheme(scheme))
	h := &harness{}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).
		WithStatusSubresource(&appv1.App{}, &appsv1.Deployment{}).
		Build()
	h.reconciler = reconcile.New(h.counting(), controller.Steps()...).WithConditions(controller.Conditions)
	return h
}

// counting returns the client of the reconciler. Writes of the test itself are not counted.
func (h *harness) counting() client.Client {
	return interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			h.writes.Add(1)
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			h.writes.Add(1)
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			h.writes.Add(1)
			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			h.writes.Add(1)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
}

// reconcile runs one pass over the sample and returns the sample after it.
func (h *harness) reconcile(t *testing.T) *appv1.App {
	t.Helper()
	h.writes.Store(0)
	app := sample()
	_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(app)})
	require.NoError(t, err)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(app), app))
	return app
}

// change edits the sample as a user would, and runs a pass.
func (h *harness) change(t *testing.T, edit func(*appv1.App)) *appv1.App {
	t.Helper()
	app := sample()
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(app), app))
	edit(app)
	app.Generation++
	require.NoError(t, h.Update(t.Context(), app))
	return h.reconcile(t)
}

func (h *harness) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), d))
	return d
}

func (h *harness) service(t *testing.T) *corev1.Service {
	t.Helper()
	s := &corev1.Service{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), s))
	return s
}

// sample has a UID and a generation, which the fake client does not set.
func sample() *appv1.App {
	return &appv1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nginx-app", UID: "sample-uid", Generation: 1},
		Spec: appv1.AppSpec{
			Replicas: new(int32(2)),
			Image:    "nginx:1.16.1",
			Ports:    []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}},
			Envs:     []corev1.EnvVar{{Name: "DEMO", Value: "app"}, {Name: "GOPATH", Value: "gopath"}},
		},
	}
}

func reason(app *appv1.App, conditionType string) string {
	c, _ := controller.Conditions.Get(app.Status.Conditions, conditionType)
	return c.Reason
}

func TestChildren(t *testing.T) {
	h := newHarness(t, sample())
	app := h.reconcile(t)

	d := h.deployment(t)
	assert.True(t, metav1.IsControlledBy(d, app))
	assert.EqualValues(t, 2, *d.Spec.Replicas)
	assert.Equal(t, map[string]string{"app.example.com/v1": "nginx-app"}, d.Spec.Selector.MatchLabels)
	assert.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels, "other labels would roll the pods when they change")
	assert.Empty(t, d.Spec.Template.Annotations)
	assert.Nil(t, d.Spec.Template.Spec.SecurityContext)
	assert.Equal(t, []corev1.Container{{
		Name: "nginx-app", Image: "nginx:1.16.1", ImagePullPolicy: corev1.PullIfNotPresent,
		Env:   app.Spec.Envs,
		Ports: []corev1.ContainerPort{{ContainerPort: 80}},
	}}, d.Spec.Template.Spec.Containers)

	s := h.service(t)
	assert.True(t, metav1.IsControlledBy(s, app))
	assert.Equal(t, d.Spec.Selector.MatchLabels, s.Spec.Selector)
	assert.Equal(t, app.Spec.Ports, s.Spec.Ports)

	assert.EqualValues(t, 3, h.writes.Load(), "two children and the status")
	assert.Equal(t, "nginx-app.default.svc:8080", app.Status.Endpoint)
	assert.Equal(t, "app.example.com/v1=nginx-app", app.Status.Selector)
	assert.Equal(t, "LessReplicas", reason(app, conditions.Ready), "created is not ready")
	assert.Equal(t, "Succeeded", reason(app, "ServiceReady"))

	h.reconcile(t)
	assert.Zero(t, h.writes.Load(), "nothing has changed")
}

func TestUpdateStatus(t *testing.T) {
	h := newHarness(t, sample())
	h.reconcile(t)
	d := h.deployment(t)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
		},
	}
	require.NoError(t, h.Status().Update(t.Context(), d))

	app := h.reconcile(t)
	assert.EqualValues(t, 2, app.Status.AvailableReplicas)
	assert.EqualValues(t, 1, app.Status.ObservedGeneration, "it is the App's")
	for _, conditionType := range []string{conditions.Ready, "ServiceReady", "Available", "Progressing"} {
		assert.True(t, controller.Conditions.IsTrue(app.Status.Conditions, conditionType), conditionType)
	}
	assert.Len(t, app.Status.Conditions, 4)
	assert.EqualValues(t, 1, h.writes.Load(), "the status only")

	d.Status.Conditions[0], d.Status.Conditions[1] = d.Status.Conditions[1], d.Status.Conditions[0]
	require.NoError(t, h.Status().Update(t.Context(), d))
	h.reconcile(t)
	assert.Zero(t, h.writes.Load(), "the order of conditions has no meaning")
}

func TestPorts(t *testing.T) {
	tests := map[string]struct {
		ports     []corev1.ServicePort
		names     []string
		container []corev1.ContainerPort
		reason    string
	}{
		"one": {
			ports: []corev1.ServicePort{{Port: 80}}, names: []string{""},
			container: []corev1.ContainerPort{{ContainerPort: 80}},
			reason:    "a Service of one port needs no name; without targetPort it is the port",
		},
		"several": {
			ports: []corev1.ServicePort{{Port: 53}, {Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "web", Port: 80}},
			names: []string{"tcp-53", "udp-53", "web"},
			container: []corev1.ContainerPort{
				{ContainerPort: 53}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {ContainerPort: 80},
			},
			reason: "the API server wants names; the protocol is kept",
		},
		"named target": {
			ports: []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromString("http")}}, names: []string{""},
			container: []corev1.ContainerPort{{ContainerPort: 8080, Name: "http"}},
			reason:    "a name says nothing of the number",
		},
		"same target": {
			ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}, {Port: 8080, TargetPort: intstr.FromInt32(80)}},
			names: []string{"tcp-80", "tcp-8080"}, container: []corev1.ContainerPort{{ContainerPort: 80}},
			reason: "a container opens a port once",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			app := sample()
			app.Spec.Ports = tc.ports
			h := newHarness(t, app)
			h.reconcile(t)
			var names []string
			for _, p := range h.service(t).Spec.Ports {
				names = append(names, p.Name)
			}
			assert.Equal(t, tc.names, names, tc.reason)
			assert.Equal(t, tc.container, h.deployment(t).Spec.Template.Spec.Containers[0].Ports, tc.reason)
		})
	}
}

func TestServicePruned(t *testing.T) {
	h := newHarness(t, sample())
	h.reconcile(t)
	app := h.change(t, func(app *appv1.App) { app.Spec.Ports = nil })
	assert.True(t, apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(app), &corev1.Service{})))
	assert.Empty(t, app.Status.Endpoint)
}

func TestDisruptionBudget(t *testing.T) {
	h := newHarness(t, sample())
	app := h.reconcile(t)
	var budget policyv1.PodDisruptionBudget
	assert.True(t, apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(app), &budget)))

	h.change(t, func(app *appv1.App) { app.Spec.MinAvailable = new(intstr.FromString("50%")) })
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(app), &budget))
	assert.True(t, metav1.IsControlledBy(&budget, app))
	assert.Equal(t, "50%", budget.Spec.MinAvailable.StrVal)
	assert.Equal(t, h.deployment(t).Spec.Selector, budget.Spec.Selector)

	h.change(t, func(app *appv1.App) { app.Spec.MinAvailable = nil })
	assert.True(t, apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(app), &budget)))
}

func TestDuplicateEnv(t *testing.T) {
	app := sample()
	app.Spec.Envs = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "A", Value: "2"}}
	h := newHarness(t, app)
	h.reconcile(t)
	assert.Equal(t, []corev1.EnvVar{{Name: "B", Value: "$(A)"}, {Name: "A", Value: "2"}},
		h.deployment(t).Spec.Template.Spec.Containers[0].Env)
}

func TestConfiguration(t *testing.T) {
	mark := func(h *harness) string {
		return h.deployment(t).Spec.Template.Annotations["app.huolala.cn/configuration"]
	}
	app := sample()
	app.Spec.ConfigMapRefs = []corev1.LocalObjectReference{{Name: "settings"}}
	app.Spec.SecretRefs = []corev1.LocalObjectReference{{Name: "password"}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"a": "1"}}
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "password"}}
	h := newHarness(t, app, settings, password)
	h.reconcile(t)
	first := mark(h)
	assert.NotEmpty(t, first)

	settings.Data["a"] = "2"
	require.NoError(t, h.Update(t.Context(), settings))
	h.reconcile(t)
	second := mark(h)
	assert.NotEqual(t, first, second, "the pods are rolled")

	require.NoError(t, h.Delete(t.Context(), password))
	got := h.reconcile(t)
	assert.Equal(t, second, mark(h), "new pods might not start")
	assert.Equal(t, "ReferenceNotFound", reason(got, conditions.Ready))

	h.change(t, func(app *appv1.App) { app.Spec.ConfigMapRefs, app.Spec.SecretRefs = nil, nil })
	assert.Empty(t, mark(h))
}

// TestSpecAnnotation checks that the tutorial's annotation is removed: it contains the values of the environment.
func TestSpecAnnotation(t *testing.T) {
	app := sample()
	app.Annotations = map[string]string{"spec": `{"envs":[{"name":"PASSWORD","value":"canary"}]}`, "team": "blue"}
	h := newHarness(t, app)
	h.reconcile(t)
	app = h.reconcile(t)
	assert.Equal(t, map[string]string{"team": "blue"}, app.Annotations)
	h.reconcile(t)
	assert.Zero(t, h.writes.Load(), "once is enough")
}

func TestForeignChildren(t *testing.T) {
	name := metav1.ObjectMeta{Namespace: "default", Name: "nginx-app"}
	t.Run("deployment", func(t *testing.T) {
		h := newHarness(t, sample(), &appsv1.Deployment{
			ObjectMeta: name, Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}, Status: appsv1.DeploymentStatus{Replicas: 7},
		})
		app := h.reconcile(t)
		assert.Equal(t, "OwnedByAnother", reason(app, conditions.Ready))
		assert.Zero(t, app.Status.Replicas, "they are somebody else's")
		assert.EqualValues(t, 7, *h.deployment(t).Spec.Replicas)
	})
	t.Run("service", func(t *testing.T) {
		h := newHarness(t, sample(), &corev1.Service{ObjectMeta: name})
		app := h.reconcile(t)
		assert.Equal(t, "OwnedByAnother", reason(app, "ServiceReady"))
		assert.Empty(t, app.Status.Endpoint)
		assert.Empty(t, h.service(t).Spec.Ports)
		assert.NotEmpty(t, h.deployment(t).OwnerReferences, "the Deployment is made nevertheless")
	})
}

func TestInvalidService(t *testing.T) {
	tests := map[string]struct {
		edit   func(*appv1.App)
		reason string
	}{
		"InvalidServiceName": {func(app *appv1.App) { app.Name = "nginx.app" }, "a Service is a part of a DNS name"},
		"DuplicatePort": {func(app *appv1.App) {
			app.Spec.Ports = []corev1.ServicePort{{Port: 80}, {Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}}
		}, "TCP is the default"},
	}
	for want, tc := range tests {
		t.Run(want, func(t *testing.T) {
			app := sample()
			tc.edit(app)
			h := newHarness(t, app)
			_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(app)})
			require.NoError(t, err)
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(app), app))
			assert.Equal(t, want, reason(app, "ServiceReady"), tc.reason)
			assert.True(t, controller.Conditions.IsTrue(app.Status.Conditions, conditions.Stalled))
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(app), &appsv1.Deployment{}), "it is made nevertheless")
		})
	}
}
