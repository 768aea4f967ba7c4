//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestSurvivesEveryFault runs scenarios that cover everything that the operator reacts to, once for every fault at every
// point. The faults at the creation and the deletion of an App are tried only in the scenario "made": the other scenarios leave
// nothing else to clean up. What the operator asks the API server for is compared with its role.
func TestSurvivesEveryFault(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	tutorial := sample()
	tutorial.Annotations = map[string]string{"spec": "{}"} // the tutorial's operator has set it
	created := reconciletest.Create(tutorial).Then(reconciletest.Has(reports("nginx-app.default.svc:8080", 2)))
	guarded := sample()
	guarded.Spec.MinAvailable = new(intstr.FromInt32(1))
	tests := map[string][]reconciletest.Action{
		"made": {created, reconciletest.Delete(sample())},
		"changed": {
			created.WithoutFaults(),
			reconciletest.Change(sample(), func(a *appv1.App) {
				a.Spec.ConfigMapRefs, a.Spec.MinAvailable = []corev1.LocalObjectReference{{Name: "settings"}}, new(intstr.FromInt32(1))
			}),
			reconciletest.Change(settings, func(m *corev1.ConfigMap) { m.Data = map[string]string{"colour": "red"} }),
			reconciletest.Change(&appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image, d.OwnerReferences[0].BlockOwnerDeletion = "nginx", nil
			}).Then(reconciletest.Has(runs(2, corev1.Container{Name: "nginx-app", Image: "nginx:1.16.1"}))),
		},
		"exposed": {
			reconciletest.Create(guarded).WithoutFaults(),
			reconciletest.Change(sample(), func(a *appv1.App) {
				a.Spec.Ports[0].Port, a.Spec.ServiceType, a.Spec.MinAvailable.IntVal = 8081, corev1.ServiceTypeLoadBalancer, 2
			}).Then(reconciletest.Has(reports("nginx-app.default.svc:8081", 2))),
			reconciletest.Change(sample(), func(a *appv1.App) { a.Spec.Ports, a.Spec.MinAvailable = nil, nil }).Then(absent(&corev1.Service{ObjectMeta: named})),
		},
	}
	var explored []*reconciletest.Report
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario(t, actions...)
			s.Objects, s.Options.Pairs = []client.Object{settings}, 20
			explored = append(explored, reconciletest.Explore(t, s))
		})
	}
	reconciletest.AssertRole(t, "../config/rbac/role.yaml", explored)
}

// scenario returns a scenario with these actions.
func scenario(t *testing.T, actions ...reconciletest.Action) reconciletest.Scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, appv1.AddToScheme(scheme))
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"../config/crd/bases"}, Actions: actions,
		Start: func(p *reconciletest.Process) error {
			return controller.SetupWithManager(p.Manager(controller.Cache()))
		},
	}
}

// TestLoadBalancer checks that an App whose users cannot reach it from outside yet is not Ready.
func TestLoadBalancer(t *testing.T) {
	app := sample()
	app.Spec.ServiceType = corev1.ServiceTypeLoadBalancer
	tests := map[string]struct {
		controllers []reconciletest.SimulatedController
		ready       corev1.ConditionStatus
		reason      string
	}{
		"WithAnAddress":         {ready: corev1.ConditionTrue, reason: "Succeeded"},
		"WithoutACloudProvider": {controllers: []reconciletest.SimulatedController{{For: &corev1.Service{}}}, ready: corev1.ConditionFalse, reason: "NoAddress"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario(t, reconciletest.Create(app))
			s.SimulatedControllers = tc.controllers
			reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
				now := sample()
				require.NoError(t, env.Get(t.Context(), client.ObjectKeyFromObject(now), now))
				for _, conditionType := range []string{"ServiceReady", "Ready"} {
					c, _ := controller.Conditions.Get(now.Status.Conditions, conditionType)
					require.Equal(t, []string{string(tc.ready), tc.reason}, []string{string(c.Status), c.Reason}, conditionType)
				}
				require.NotEmpty(t, now.Status.Endpoint, "it can be reached in the cluster")
			})
		})
	}
}
