package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile"
)

// actions cover everything that the operator reacts to.
func actions(u *user) []operatortest.Action {
	return []operatortest.Action{
		{Name: "created", Do: func(t *testing.T) {
			u.create(t, "web", func(s *appv1.AppSpec) { s.Envs = []corev1.EnvVar{{Name: "DEMO", Value: "app"}} })
		}},
		{Name: "annotated as the tutorial did", Do: func(t *testing.T) {
			operatortest.Change(t, u, u.app("web"), func(app *appv1.App) { app.Annotations = map[string]string{"spec": "{}"} })
		}},
		{Name: "rolled out", Do: func(t *testing.T) {
			d := operatortest.Live(t, u, u.Deployment("web"))
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
			require.NoError(t, u.Status().Update(t.Context(), d))
		}},
		{Name: "given a budget", Do: func(t *testing.T) {
			u.set(t, "web", func(s *appv1.AppSpec) { s.MinAvailable = new(intstr.FromInt32(1)) })
		}},
		{Name: "given another port", Do: func(t *testing.T) {
			u.set(t, "web", func(s *appv1.AppSpec) {
				s.Ports = append(s.Ports, corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP})
			})
		}},
		{Name: "an env taken away", Do: func(t *testing.T) { u.set(t, "web", func(s *appv1.AppSpec) { s.Envs = nil }) }},
		{Name: "left to an autoscaler", Do: func(t *testing.T) { u.set(t, "web", func(s *appv1.AppSpec) { s.Replicas = nil }) }},
		{Name: "scaled by it", Do: func(t *testing.T) {
			operatortest.Change(t, u, u.Deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
		}},
		{Name: "drifted", Do: func(t *testing.T) {
			operatortest.Change(t, u, u.Deployment("web"), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:1.0" })
		}},
		{Name: "Service deleted", Do: func(t *testing.T) { require.NoError(t, u.Delete(t.Context(), u.Service("web"))) }},
		{Name: "without ports and budget", Do: func(t *testing.T) {
			u.set(t, "web", func(s *appv1.AppSpec) { s.Ports, s.MinAvailable = nil, nil })
		}},
		{Name: "a port again", Do: func(t *testing.T) {
			u.set(t, "web", func(s *appv1.AppSpec) { s.Ports = []corev1.ServicePort{{Port: 80}} })
		}},
		{Name: "Service removed by hand", Do: func(t *testing.T) { require.NoError(t, u.Delete(t.Context(), u.Service("web"))) }},
	}
}

// run runs the scenario with a fault. It returns the final state, and the number of writes that the operator tried.
func run(t *testing.T, f operatortest.Fault) (final string, writes int) {
	t.Helper()
	u := newUser(t, apiServer(t))
	history := operatortest.NewHistory(u.User, nil)
	scenario := operatortest.Scenario{
		Start: func(c client.Client) ctrlreconcile.Reconciler {
			return reconcile.New(c, controller.Steps()...).WithConditions(controller.Conditions)
		},
		Key:     client.ObjectKey{Namespace: u.Namespace, Name: "web"},
		Actions: actions(u),
	}
	writes = scenario.Run(t, history, f)
	return history.Describe(t, outcome), writes
}

// outcome returns the part of an object that is the same after every run.
func outcome(obj client.Object) any {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return obj.Spec
	case *corev1.Service:
		obj.Spec.ClusterIP, obj.Spec.ClusterIPs = "", nil
		return obj.Spec
	case *appv1.App:
		for i := range obj.Status.Conditions {
			c := &obj.Status.Conditions[i]
			c.LastTransitionTime, c.LastUpdateTime = metav1.Time{}, metav1.Time{}
		}
		return map[string]any{"annotations": obj.Annotations, "status": obj.Status}
	}
	return nil
}

// TestFaults runs the scenario with crashes at every write and with stale reads: the final state is always the same.
func TestFaults(t *testing.T) {
	t.Parallel()
	want, writes := run(t, operatortest.Fault{})
	t.Logf("%d writes; in the end:\n%s", writes, want)
	for _, part := range []string{`*v1.Deployment web of "App web"`, `"replicas":5`, `*v1.Service web of "App web"`, `"endpoint":"web.namespace.svc:80"`, `"annotations":null`} {
		require.Contains(t, want, part, "without a fault all is as wanted")
	}
	require.NotContains(t, want, "PodDisruptionBudget")
	operatortest.EachFault(t, writes, func(t *testing.T, f operatortest.Fault) {
		got, _ := run(t, f)
		assert.Equal(t, want, got)
	})
}
