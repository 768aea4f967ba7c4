package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources/workload"
)

// statefulSet returns a StatefulSet of three ready replicas after its restart. The given number of pods has the new
// template.
func statefulSet(updated int32, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{}
	s.Namespace, s.Name, s.Generation = "ns", "db", 2
	s.Spec.Replicas = new(int32(3))
	s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	s.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: due.Format(time.RFC3339)}
	s.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, CurrentReplicas: 3 - updated, UpdatedReplicas: updated,
		CurrentRevision: "db-1", UpdateRevision: "db-2",
	}
	if updated == 3 { // then the controller has made the new revision the current one
		s.Status.CurrentReplicas, s.Status.CurrentRevision = 3, "db-2"
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func onDelete(s *appsv1.StatefulSet) {
	s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
}

func partitioned(ordinal int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &ordinal}
	}
}

func scaledToZero(s *appsv1.StatefulSet) {
	s.Spec.Replicas, s.Status = new(int32(0)), appsv1.StatefulSetStatus{ObservedGeneration: 2, CurrentRevision: "db-2", UpdateRevision: "db-2"}
}

// daemonSet returns a DaemonSet after its restart. On the given number of nodes, its pods have the new template.
func daemonSet(strategy appsv1.DaemonSetUpdateStrategyType, nodes, updated int32) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{}
	d.Namespace, d.Name, d.Generation = "ns", "agent", 2
	d.Spec.UpdateStrategy.Type = strategy
	d.Spec.Template.Annotations = map[string]string{workload.AnnotationRestartedAt: due.Format(time.RFC3339)}
	d.Status = appsv1.DaemonSetStatus{
		ObservedGeneration: 2, DesiredNumberScheduled: nodes, CurrentNumberScheduled: nodes, NumberReady: nodes, NumberAvailable: nodes,
		UpdatedNumberScheduled: updated,
	}
	return d
}

// asUnstructured returns the workload as an unstructured object.
func asUnstructured(t *testing.T, obj client.Object, kind string) client.Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind))
	return u
}

// TestUpdateStrategy observes a restart and a rollout. A restart is complete when all pods are replaced. A rollout is
// complete when the spec does not ask for more.
func TestUpdateStrategy(t *testing.T) {
	const (
		oneLeft     = "1 of 3 pods are of the former template: the partition 1 leaves them as they are"
		noneDeleted = "3 of 3 pods are of the former template: the update strategy OnDelete replaces each when somebody deletes it"
	)
	rolling, deleting := appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType
	result := func(state workload.RolloutState, reason, message string) workload.Rollout {
		return workload.Rollout{State: state, Reason: reason, Message: message}
	}
	complete := result(workload.RolloutComplete, "", "")
	tests := map[string]struct {
		reason           string
		obj              client.Object
		restart, rollout workload.Rollout
	}{
		"Rolling": {
			reason:  "all pods are replaced",
			obj:     statefulSet(3),
			restart: complete, rollout: complete,
		},
		"OnDelete": {
			reason:  "the controller replaces no pod, so waiting for it would never end",
			obj:     statefulSet(0, onDelete),
			restart: result(workload.RolloutUnknown, "OnDelete", noneDeleted), rollout: result(workload.RolloutUnknown, "OnDelete", noneDeleted),
		},
		"OnDeleteSome": {
			reason:  "somebody has deleted one pod",
			obj:     statefulSet(1, onDelete),
			restart: result(workload.RolloutUnknown, "OnDelete", "2"+noneDeleted[1:]), rollout: result(workload.RolloutUnknown, "OnDelete", "2"+noneDeleted[1:]),
		},
		"OnDeleteAll": {
			reason:  "somebody has deleted all pods; the controller leaves currentRevision as it is",
			obj:     statefulSet(3, onDelete, func(s *appsv1.StatefulSet) { s.Status.CurrentReplicas, s.Status.CurrentRevision = 0, "db-1" }),
			restart: complete, rollout: complete,
		},
		"OnDeleteNotReady": {
			reason:  "all pods are new, and one of them starts",
			obj:     statefulSet(3, onDelete, func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 2 }),
			restart: result(workload.RolloutInProgress, "LessReady", "Ready: 2/3"), rollout: result(workload.RolloutInProgress, "LessReady", "Ready: 2/3"),
		},
		"OnDeleteNotObserved": {
			reason:  "the status is about the template before",
			obj:     statefulSet(3, onDelete, func(s *appsv1.StatefulSet) { s.Generation = 3 }),
			restart: result(workload.RolloutInProgress, "LatestGenerationNotObserved", "StatefulSet generation is 3, but latest observed generation is 2"),
			rollout: result(workload.RolloutInProgress, "LatestGenerationNotObserved", "StatefulSet generation is 3, but latest observed generation is 2"),
		},
		"OnDeleteScaledToZero": {
			reason:  "no pod is left that could be of the former template",
			obj:     statefulSet(0, onDelete, scaledToZero),
			restart: complete, rollout: complete,
		},
		"PartitionInProgress": {
			reason:  "one of the two pods that the partition covers is replaced",
			obj:     statefulSet(1, partitioned(1)),
			restart: result(workload.RolloutInProgress, "PartitionRollout", "updated: 1/2"), rollout: result(workload.RolloutInProgress, "PartitionRollout", "updated: 1/2"),
		},
		"PartitionCovered": {
			reason:  "the pods that it covers are replaced, and the other one never will be",
			obj:     statefulSet(2, partitioned(1)),
			restart: result(workload.RolloutUnknown, "Partition", oneLeft), rollout: result(workload.RolloutComplete, "Partition", oneLeft),
		},
		"PartitionCoversNone": {
			reason:  "a partition above all pods stages a change",
			obj:     statefulSet(0, partitioned(5)),
			restart: result(workload.RolloutUnknown, "Partition", "3 of 3 pods are of the former template: the partition 5 leaves them as they are"),
			rollout: result(workload.RolloutComplete, "Partition", "3 of 3 pods are of the former template: the partition 5 leaves them as they are"),
		},
		"PartitionZero": {
			reason:  "the default of the API server covers all pods",
			obj:     statefulSet(3, partitioned(0)),
			restart: complete, rollout: complete,
		},
		"PartitionScaledToZero": {
			reason:  "it leaves nothing as it is",
			obj:     statefulSet(0, partitioned(2), scaledToZero),
			restart: complete, rollout: complete,
		},
		"MinReadySeconds": {
			reason:  "the last pod has not been ready for long enough",
			obj:     statefulSet(3, func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds, s.Status.AvailableReplicas = 30, 2 }),
			restart: result(workload.RolloutInProgress, "LessAvailable", "Available: 2/3"), rollout: result(workload.RolloutInProgress, "LessAvailable", "Available: 2/3"),
		},
		"DaemonSet": {
			reason:  "all pods are replaced",
			obj:     daemonSet(rolling, 3, 3),
			restart: complete, rollout: complete,
		},
		"DaemonSetInProgress": {
			reason:  "its controller replaces the others",
			obj:     daemonSet(rolling, 3, 1),
			restart: result(workload.RolloutInProgress, "LessUpdated", "Updated: 1/3"), rollout: result(workload.RolloutInProgress, "LessUpdated", "Updated: 1/3"),
		},
		"DaemonSetOnDelete": {
			reason:  "the controller replaces no pod, so waiting for it would never end",
			obj:     daemonSet(deleting, 3, 0),
			restart: result(workload.RolloutUnknown, "OnDelete", noneDeleted), rollout: result(workload.RolloutUnknown, "OnDelete", noneDeleted),
		},
		"DaemonSetOnDeleteAll": {
			reason:  "somebody has deleted all pods",
			obj:     daemonSet(deleting, 3, 3),
			restart: complete, rollout: complete,
		},
		"DaemonSetWithoutNodes": {
			reason:  "nothing runs, so nothing is old",
			obj:     daemonSet(deleting, 0, 0),
			restart: complete, rollout: complete,
		},
		"DeploymentScaledToZero": {
			reason: "nothing runs, so nothing is old",
			obj: restartedDeployment(due, func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(int32(0))
				d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0, 0, 0
			}),
			restart: complete, rollout: complete,
		},
		"DeploymentPaused": {
			reason:  "its controller replaces no pod until the pause ends",
			obj:     restartedDeployment(due, func(d *appsv1.Deployment) { paused(d); rollingOut(d) }),
			restart: result(workload.RolloutUnknown, "Paused", "it was paused while it rolled out"), rollout: result(workload.RolloutUnknown, "Paused", "it was paused while it rolled out"),
		},
		"DeploymentPausedNotObserved": {
			reason:  "the rollout may have been complete before the pause",
			obj:     restartedDeployment(due, func(d *appsv1.Deployment) { paused(d); d.Generation = 3 }),
			restart: result(workload.RolloutInProgress, "LatestGenerationNotObserved", "Deployment generation is 3, but latest observed generation is 2"),
			rollout: result(workload.RolloutInProgress, "LatestGenerationNotObserved", "Deployment generation is 3, but latest observed generation is 2"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			restart, err := workload.ObserveRestart(tc.obj, due, time.Minute, scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.restart, restart, tc.reason)
			for _, obj := range []client.Object{tc.obj, asUnstructured(t, tc.obj, kindOf(tc.obj))} {
				rollout, err := workload.ObserveRollout(obj, scheme.Scheme)
				require.NoError(t, err)
				require.Equal(t, tc.rollout, rollout, "%s: %T", tc.reason, obj)
			}
		})
	}
}

func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.Deployment:
		return "Deployment"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	}
	return "DaemonSet"
}

// TestObserveRolloutUnstructured reads unstructured objects that are not workloads, and workloads that are not valid.
func TestObserveRolloutUnstructured(t *testing.T) {
	tests := map[string]struct {
		reason  string
		kind    string
		spec    any
		want    workload.RolloutState
		wantErr string
	}{
		"ReplicaSet": {reason: "it has no update strategy", kind: "ReplicaSet", spec: map[string]any{"replicas": int64(1)}, want: workload.RolloutInProgress},
		"Invalid":    {reason: "its spec cannot be read", kind: "StatefulSet", spec: "text", wantErr: "read StatefulSet /"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
			u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(tc.kind))
			rollout, err := workload.ObserveRollout(u, scheme.Scheme)
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr, tc.reason)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, rollout.State, tc.reason)
		})
	}
}

// TestCheckRestartUpdateStrategy checks, before a restart, whether the restart replaces all, some or no pods. Each
// restart is an hour after the one before.
func TestCheckRestartUpdateStrategy(t *testing.T) {
	tests := map[string]struct {
		reason string
		obj    client.Object
		want   workload.Blocker
	}{
		"OnDelete": {
			reason: "the controller would replace no pod",
			obj:    statefulSet(3, onDelete),
			want:   workload.Blocker{Reason: workload.BlockedUpdateStrategy, Message: "its update strategy is OnDelete: a pod is replaced when somebody deletes it"},
		},
		"DaemonSetOnDelete": {
			reason: "the last restart is not what blocks the next one",
			obj:    daemonSet(appsv1.OnDeleteDaemonSetStrategyType, 3, 0),
			want:   workload.Blocker{Reason: workload.BlockedUpdateStrategy, Message: "its update strategy is OnDelete: a pod is replaced when somebody deletes it"},
		},
		"PartitionCoversNone": {
			reason: "it leaves all pods as they are",
			obj:    statefulSet(3, partitioned(3)),
			want:   workload.Blocker{Reason: workload.BlockedUpdateStrategy, Message: "its partition 3 leaves 3 of 3 pods as they are"},
		},
		"PartitionCoversSome": {
			reason: "the pods below it are not replaced",
			obj:    statefulSet(3, partitioned(2)),
			want:   workload.Blocker{Reason: workload.BlockedPartition, Message: "its partition 2 leaves 2 of 3 pods as they are"},
		},
		"PartitionInProgress": {
			reason: "a partition is named last: whoever accepts it has to know that nothing else blocks",
			obj:    statefulSet(0, partitioned(2)),
			want:   workload.Blocker{Reason: workload.BlockedRolloutInProgress, Message: "it is still rolling out"},
		},
		"PartitionNotObserved": {
			reason: "the same",
			obj:    statefulSet(3, partitioned(2), func(s *appsv1.StatefulSet) { s.Generation = 3 }),
			want:   workload.Blocker{Reason: workload.BlockedNotObserved, Message: "its last change has not been observed yet"},
		},
		"PartitionZero": {
			reason: "it covers all pods",
			obj:    statefulSet(3, partitioned(0)),
		},
		"PartitionScaledToZero": {
			reason: "there is no pod that it leaves",
			obj:    statefulSet(0, partitioned(2), scaledToZero),
		},
		"ReplicasUnset": {
			reason: "the default is one replica, which the partition leaves",
			obj: statefulSet(1, partitioned(1), func(s *appsv1.StatefulSet) {
				s.Spec.Replicas, s.Status.Replicas, s.Status.ReadyReplicas = nil, 1, 1
			}),
			want: workload.Blocker{Reason: workload.BlockedUpdateStrategy, Message: "its partition 1 leaves 1 of 1 pods as they are"},
		},
		"DaemonSet": {
			reason: "its controller replaces all pods",
			obj:    daemonSet(appsv1.RollingUpdateDaemonSetStrategyType, 3, 3),
		},
		"DaemonSetWithoutNodes": {
			reason: "there is nothing to replace",
			obj:    daemonSet(appsv1.RollingUpdateDaemonSetStrategyType, 0, 0),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := workload.CheckRestart(tc.obj, due.Add(time.Hour), scheme.Scheme)
			require.NoError(t, err)
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}
