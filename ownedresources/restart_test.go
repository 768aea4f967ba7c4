package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const restarter = client.FieldOwner("restarter.example.com")

var due = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

func TestRestartOnceForEachTime(t *testing.T) {
	w := newWorld(t)
	w.expect(t, w.deployment(), Created, "POST deployments")
	restart := func(at time.Time) bool {
		t.Helper()
		var live appsv1.Deployment
		w.live(t, &live)
		w.count.Sent()
		restarted, err := Restart(t.Context(), w.client, &live, at, restarter)
		require.NoError(t, err)
		require.Equal(t, restarted, len(w.count.Sent()) == 1, "no request unless it is needed")
		return restarted
	}
	require.True(t, restart(due))
	require.False(t, restart(due), "after a crash it is asked for again")
	require.False(t, restart(due.Add(900*time.Millisecond)), "the annotation has whole seconds")
	require.False(t, restart(due.Add(-time.Hour)), "a later one covers an earlier one")
	require.True(t, restart(due.Add(time.Hour)))

	var live appsv1.Deployment
	w.live(t, &live)
	at, ok := RestartedAt(&live)
	require.True(t, ok)
	require.True(t, at.Equal(due.Add(time.Hour)))
	require.EqualValues(t, 3, live.Generation, "each restart is one rollout")

	changed := w.deployment()
	changed.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	_, err := w.apply(t, changed)
	require.NoError(t, err)
	w.live(t, &live)
	_, ok = RestartedAt(&live)
	require.True(t, ok, "the owner's next write leaves it")
}

func TestRestartLosesARace(t *testing.T) {
	w := newWorld(t)
	w.expect(t, w.deployment(), Created, "POST deployments")
	var stale, live appsv1.Deployment
	w.live(t, &stale)
	byHand(t, w, &live, func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{AnnotationRestartedAt: due.Add(time.Hour).Format(time.RFC3339)}
	})
	_, err := Restart(t.Context(), w.client, &stale, due, restarter)
	require.True(t, apierrors.IsConflict(err), "an older restart must not replace a newer one: %v", err)
}

func TestRestartOfWhatHasNoPods(t *testing.T) {
	_, err := Restart(t.Context(), nil, &corev1.ConfigMap{}, due, restarter)
	require.EqualError(t, err, "*v1.ConfigMap has no pods that could be replaced: give a Deployment, StatefulSet or DaemonSet")
	_, ok := RestartedAt(&corev1.ConfigMap{})
	require.False(t, ok)
	for _, workload := range []client.Object{&appsv1.StatefulSet{}, &appsv1.DaemonSet{}} {
		_, ok := RestartedAt(workload)
		require.False(t, ok)
	}
}

func TestRolloutOf(t *testing.T) {
	set := &appsv1.StatefulSet{}
	set.Generation, set.Status.ObservedGeneration = 2, 1
	tests := map[string]struct {
		obj  client.Object
		want RolloutState
	}{
		"complete":    {rollout(nil), RolloutComplete},
		"on its way":  {rollout(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }), RolloutInProgress},
		"too late":    {rollout(func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "ProgressDeadlineExceeded" }), RolloutFailed},
		"not looked":  {rollout(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }), RolloutInProgress},
		"by kstatus":  {set, RolloutInProgress},
		"no workload": {&corev1.ConfigMap{}, RolloutComplete},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ObserveRollout(tc.obj, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.State)
			require.Equal(t, tc.want == RolloutComplete, got.Reason == "", "what is not complete says why")
		})
	}
}

func TestRestartMarkSurvivesAnApply(t *testing.T) {
	w := newWorld(t)
	w.expect(t, w.deployment(), Created, "POST deployments")
	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
	})
	want := w.deployment()
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	var live appsv1.Deployment
	w.live(t, &live)
	require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
	require.Len(t, live.Spec.Template.Spec.Containers, 2)
}
