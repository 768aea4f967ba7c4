package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources/workload"
)

// deployment returns a Deployment of three replicas whose rollout is complete, and calls edit for it.
func deployment(edit func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name, d.Generation = "ns", "web", 2
	d.Spec.Replicas, d.Spec.ProgressDeadlineSeconds = new(int32(3)), new(int32(600))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	if edit != nil {
		edit(d)
	}
	return d
}

// restartedDeployment returns a deployment with the annotation of a restart.
func restartedDeployment(at time.Time, edit func(*appsv1.Deployment)) *appsv1.Deployment {
	d := deployment(edit)
	d.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: at.Format(time.RFC3339)}
	return d
}

func rollingOut(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func deadlineExceeded(d *appsv1.Deployment) {
	d.Status.Conditions[1].Reason = "ProgressDeadlineExceeded"
}

func TestObserveRollout(t *testing.T) {
	notObserved := &appsv1.StatefulSet{}
	notObserved.Generation, notObserved.Status.ObservedGeneration = 2, 1
	tests := map[string]struct {
		reason string
		obj    client.Object
		want   workload.RolloutState
	}{
		"Complete": {
			reason: "all pods are of the new template",
			obj:    deployment(nil),
			want:   workload.RolloutComplete,
		},
		"InProgress": {
			reason: "pods are being replaced",
			obj:    deployment(rollingOut),
			want:   workload.RolloutInProgress,
		},
		"DeadlineExceeded": {
			reason: "the Deployment controller has given up",
			obj:    deployment(deadlineExceeded),
			want:   workload.RolloutFailed,
		},
		"NotObserved": {
			reason: "the status is that of the generation before",
			obj:    deployment(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }),
			want:   workload.RolloutInProgress,
		},
		"StatefulSetNotObserved": {
			reason: "kstatus computes the kinds that have no rules of ours",
			obj:    notObserved,
			want:   workload.RolloutInProgress,
		},
		"NoWorkload": {
			reason: "an object without a status is what its spec asks for",
			obj:    &corev1.ConfigMap{},
			want:   workload.RolloutComplete,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := workload.ObserveRollout(tc.obj, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.State, tc.reason)
			require.Equal(t, tc.want == workload.RolloutComplete, got.Reason == "", "a rollout that is not complete has a reason")
		})
	}
}

func TestObserveRestart(t *testing.T) {
	tests := map[string]struct {
		reason     string
		obj        client.Object
		age        time.Duration
		want       workload.RolloutState
		wantReason string
	}{
		"Complete": {
			reason: "the object shows the restart, and all pods are replaced",
			obj:    restartedDeployment(due, nil),
			want:   workload.RolloutComplete,
		},
		"RestartedLater": {
			reason: "another restart replaced the same pods",
			obj:    restartedDeployment(due.Add(time.Hour), nil),
			want:   workload.RolloutComplete,
		},
		"CacheBehind": {
			reason:     "the rollout that is complete is the one before",
			obj:        restartedDeployment(due.Add(-time.Hour), nil),
			age:        time.Minute,
			want:       workload.RolloutInProgress,
			wantReason: "RestartNotSeen",
		},
		"Undone": {
			reason:     "waiting for an annotation that somebody removed must end",
			obj:        deployment(nil),
			age:        2 * time.Minute,
			want:       workload.RolloutUnknown,
			wantReason: "RestartUndone",
		},
		"PausedInProgress": {
			reason:     "the rollout does not go on by itself",
			obj:        restartedDeployment(due, func(d *appsv1.Deployment) { paused(d); rollingOut(d) }),
			want:       workload.RolloutUnknown,
			wantReason: "Paused",
		},
		"InProgress": {
			reason:     "pods are being replaced",
			obj:        restartedDeployment(due, rollingOut),
			age:        time.Hour,
			want:       workload.RolloutInProgress,
			wantReason: "LessUpdated",
		},
		"TimedOut": {
			reason:     "without a progress deadline it could last for ever",
			obj:        restartedDeployment(due, rollingOut),
			age:        time.Hour + 1,
			want:       workload.RolloutUnknown,
			wantReason: "TimedOut",
		},
		"PausedAfterwards": {
			reason: "the rollout was complete before the pause",
			obj:    restartedDeployment(due, paused),
			want:   workload.RolloutComplete,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := workload.ObserveRestart(tc.obj, due, tc.age, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.State, tc.reason)
			require.Equal(t, tc.wantReason, got.Reason, tc.reason)
		})
	}
	t.Run("NoPodTemplate", func(t *testing.T) {
		_, err := workload.ObserveRestart(&corev1.ConfigMap{}, due, 0, scheme.Scheme)
		require.ErrorContains(t, err, "no pods that could be replaced")
	})
}
