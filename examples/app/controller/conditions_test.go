package controller_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/app/controller"
)

func TestConditions(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	editor := controller.Conditions.WithClock(func() time.Time { return noon.Time })
	given := metav1.Condition{
		Type: "Progressing", Status: metav1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out", ObservedGeneration: 3,
	}
	var list []appsv1.DeploymentCondition
	stored, changed, err := editor.Set(&list, given)
	want := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out",
		LastUpdateTime: noon, LastTransitionTime: noon,
	}
	if diff := cmp.Diff(want, stored); diff != "" || !changed || err != nil {
		t.Errorf("Set(...): changed %v, error %v, -want, +got:\n%s", changed, err, diff)
	}

	given.ObservedGeneration, given.LastTransitionTime = 0, noon
	if diff := cmp.Diff([]metav1.Condition{given}, editor.AsList(&list).All()); diff != "" {
		t.Errorf("All() should return each field but the observed generation: -want, +got:\n%s", diff)
	}
	if ready := editor.Summarize(list, conditions.Summary{}); ready.Status != metav1.ConditionFalse || ready.Reason != given.Reason {
		t.Errorf("Summarize(...): %v", ready)
	}
}

// TestConditionsForm covers what the API of Deployments accepts and the API of metav1.Condition refuses.
func TestConditionsForm(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    metav1.Condition
	}{
		"NoReason":      {"The reason is optional.", metav1.Condition{Type: "Ready", Status: "True"}},
		"ReasonInWords": {"The reason has no pattern.", metav1.Condition{Type: "Ready", Status: "True", Reason: "all is well"}},
		"TypeOfAnyForm": {"The type has no pattern.", metav1.Condition{Type: "ready for use", Status: "True"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var list []appsv1.DeploymentCondition
			if _, changed, err := controller.Conditions.Set(&list, tc.set); !changed || err != nil {
				t.Errorf("\n%s\nSet(...): changed %v, error %v", tc.reason, changed, err)
			}
		})
	}
}
