//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/examples/eru/webhooks"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestSurvivesEveryFault runs a scenario that covers everything that the operator reacts to, once for every fault at every
// point. Package reconciletest itself asserts that pods are not replaced more often than without faults.
func TestSurvivesEveryFault(t *testing.T) {
	web, eru := toRestart("web"), eruv1.NewEru("default", "web") // as the operator creates it
	tests := map[string]struct {
		webhooks []string
		actions  []reconciletest.Action
	}{
		"made": {[]string{"../config/webhook/base/manifests.yaml"}, []reconciletest.Action{
			reconciletest.Create(web).Then(reconciletest.Has(eru)),
			reconciletest.Delete(eru),
			reconciletest.Delete(web),
		}},
		"used": {nil, []reconciletest.Action{ // without webhooks: they would refuse one of the schedules
			reconciletest.Create(eru),
			reconciletest.Create(web),
			reconciletest.Change(eru, func(e *eruv1.Eru) { e.Spec.Enabled, e.Spec.Schedule = true, "0 * * * *" }),
			reconciletest.Wait(time.Hour),
			reconciletest.Wait(time.Minute).Then(started("web", "2000-01-01T01:00:00Z", "")), // the restart is recorded before the next action
			reconciletest.Change(eru, func(e *eruv1.Eru) { e.Spec.Schedule = "0 0 30 2 *" }),
			reconciletest.Change(eru, func(e *eruv1.Eru) { e.Spec.Schedule = "30 * * * *" }),
			reconciletest.Change(web, func(d *appsv1.Deployment) { delete(d.Annotations, eruv1.AnnotationEru) }),
			reconciletest.Delete(web),
		}},
	}
	var reports []*reconciletest.Report
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, clientgoscheme.AddToScheme(scheme))
			require.NoError(t, eruv1.AddToScheme(scheme))
			reports = append(reports, reconciletest.Explore(t, reconciletest.Scenario{
				Scheme: scheme, CRDs: []string{"../config/crd/bases"}, Webhooks: tc.webhooks,
				Start: func(p *reconciletest.Process) error {
					mgr := p.Manager(controller.Cache())
					return errors.Join(
						controller.SetupWithManager(mgr, restarts.Restarts{Clock: clock.RealClock{}, MinInterval: time.Minute}),
						webhooks.SetupWithManager(mgr, time.Minute),
					)
				},
				Actions: tc.actions, Ignore: reconciletest.Ignore{
					Func:   earlier,
					Fields: map[string][]string{"Eru": {"spec.timeZone"}}, // a default, which is absent if the webhook was passed over
				},
				Options: reconciletest.Options{Pairs: 20},
			}))
		})
	}
	reconciletest.AssertRole(t, "../config/rbac/role.yaml", reports)
}

// earlier ignores conditions of faults that are over. If the Deployment seemed to be gone during a fault, an Eru that was never
// enabled ends with the condition Disabled instead of Created.
func earlier(obj *unstructured.Unstructured) {
	all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if obj.GetKind() != "Eru" || len(all) == 0 {
		return
	}
	last := all[len(all)-1].(map[string]any)
	if last["type"] == eruv1.ConditionCreated {
		last["type"], last["reason"], last["message"] = eruv1.ConditionStopped, "Disabled", "spec.enabled is false"
	}
	_ = unstructured.SetNestedSlice(obj.Object, []any{last}, "status", "conditions")
}

// toRestart returns a Deployment that requests an Eru.
func toRestart(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: asked},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.27"}}},
			},
		},
	}
}
