package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestHindranceOf(t *testing.T) {
	restarted := func(at time.Time, edit func(*appsv1.Deployment)) *appsv1.Deployment {
		d := rollout(edit)
		d.Spec.Template.Annotations = map[string]string{AnnotationRestartedAt: at.Format(time.RFC3339)}
		return d
	}
	tests := map[string]struct {
		reason string
		obj    client.Object
		want   string
	}{
		"none":        {"nothing is in the way", rollout(nil), ""},
		"before":      {"that was another time", restarted(due.Add(-time.Hour), nil), ""},
		"the same":    {"it is this one, which may have been sent before a crash", restarted(due, slow), ""},
		"by somebody": {"the pods are newer than the time", restarted(due.Add(time.Second), nil), BlockedAlreadyRestarted},
		"paused":      {"nothing would be rolled out", rollout(func(d *appsv1.Deployment) { d.Spec.Paused = true }), BlockedPaused},
		"rolling out": {"pods are being replaced", rollout(slow), BlockedRolloutInProgress},
		"annotated":   {"its controller is about to see that nothing is to be rolled out", rollout(func(d *appsv1.Deployment) { d.Generation++ }), BlockedNotObserved},
		"failed":      {"a restart may help", rollout(func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ProgressDeadlineExceeded" }), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := CheckRestart(tc.obj, due, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.Reason, tc.reason)
			require.Equal(t, got.Reason == "", got.Message == "")
		})
	}
	_, err := CheckRestart(&corev1.ConfigMap{}, due, scheme.Scheme)
	require.ErrorContains(t, err, "no pods that could be replaced")
}
