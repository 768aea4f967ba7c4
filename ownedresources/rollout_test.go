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

func slow(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }

func TestRolloutAfter(t *testing.T) {
	at := func(restarted time.Time, edit func(*appsv1.Deployment)) *appsv1.Deployment {
		d := rollout(edit)
		d.Spec.Template.Annotations = map[string]string{AnnotationRestartedAt: restarted.Format(time.RFC3339)}
		return d
	}
	tests := map[string]struct {
		reason string
		obj    client.Object
		age    time.Duration
		want   RolloutState
		why    string
	}{
		"complete":    {"the restart is seen, and done", at(due, nil), 0, RolloutComplete, ""},
		"later":       {"another restart replaced the same pods", at(due.Add(time.Hour), nil), 0, RolloutComplete, ""},
		"behind":      {"what is complete is the rollout before", at(due.Add(-time.Hour), nil), time.Minute, RolloutInProgress, "RestartNotSeen"},
		"undone":      {"nobody waits for ever for what is not there", rollout(nil), 2 * time.Minute, RolloutUnknown, "RestartUndone"},
		"paused":      {"it does not go on by itself", at(due, func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 1 }), 0, RolloutUnknown, "Paused"},
		"goes on":     {"pods are being replaced", at(due, slow), time.Hour, RolloutInProgress, "LessUpdated"},
		"stuck":       {"without a progress deadline it would last for ever", at(due, slow), time.Hour + 1, RolloutUnknown, "TimedOut"},
		"paused late": {"the restart was done before", at(due, func(d *appsv1.Deployment) { d.Spec.Paused = true }), 0, RolloutComplete, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ObserveRestart(tc.obj, due, tc.age, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.State, tc.reason)
			require.Equal(t, tc.why, got.Reason, tc.reason)
		})
	}
	_, err := ObserveRestart(&corev1.ConfigMap{}, due, 0, scheme.Scheme)
	require.ErrorContains(t, err, "no pods that could be replaced")
}
