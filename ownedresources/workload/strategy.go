package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/readiness"
)

// The reasons of a [Rollout] in which pods of the former template stay until somebody does something.
const (
	reasonPaused    = "Paused"
	reasonOnDelete  = "OnDelete"
	reasonPartition = "Partition"
)

// typed converts an unstructured Deployment, StatefulSet or DaemonSet into its Go type, whose fields are needed here. It returns every
// other object unchanged.
func typed(obj client.Object) (client.Object, error) {
	content, ok := obj.(runtime.Unstructured)
	gvk := obj.GetObjectKind().GroupVersionKind()
	if !ok || gvk.GroupVersion() != appsv1.SchemeGroupVersion {
		return obj, nil
	}
	var workload client.Object
	switch gvk.Kind {
	case "Deployment":
		workload = &appsv1.Deployment{}
	case "StatefulSet":
		workload = &appsv1.StatefulSet{}
	case "DaemonSet":
		workload = &appsv1.DaemonSet{}
	default:
		return obj, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.UnstructuredContent(), workload); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	return workload, nil
}

// asRollingUpdate returns the object that is passed to kstatus. By the rules of kstatus a StatefulSet with the strategy OnDelete is
// always complete. So asRollingUpdate returns a copy of it with the strategy RollingUpdate: when all pods are replaced, the status is the
// same with both strategies. Other objects are returned unchanged.
func asRollingUpdate(obj client.Object) client.Object {
	s, ok := obj.(*appsv1.StatefulSet)
	if !ok || !isOnDelete(s) {
		return obj
	}
	rolling := *s
	rolling.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))},
	}
	return &rolling
}

// withStrategy returns the rollout that kstatus has computed, with corrections where the workload's controller does not replace all pods:
// it replaces none while the Deployment is paused, none by itself with the strategy OnDelete, and none below the partition.
func withStrategy(obj client.Object, rollout Rollout) Rollout {
	if rollout.Reason == readiness.ReasonNotObserved || rollout.State == RolloutFailed {
		return rollout
	}
	former, all := formerPods(obj)
	switch s, isStatefulSet := obj.(*appsv1.StatefulSet); {
	case isPaused(obj) && rollout.State == RolloutInProgress:
		return Rollout{RolloutUnknown, reasonPaused, "it was paused while it rolled out"}
	case former > 0 && isOnDelete(obj):
		return Rollout{RolloutUnknown, reasonOnDelete, fmt.Sprintf(
			"%d of %d pods are of the former template: the update strategy OnDelete replaces each when somebody deletes it", former, all)}
	case !isStatefulSet || rollout.State != RolloutComplete:
		return rollout
	case s.Spec.MinReadySeconds > 0 && s.Status.AvailableReplicas < all: // kstatus checks only that the pods are ready
		return Rollout{RolloutInProgress, "LessAvailable", fmt.Sprintf("Available: %d/%d", s.Status.AvailableReplicas, all)}
	case former > 0 && partition(s) > 0:
		return Rollout{RolloutComplete, reasonPartition, fmt.Sprintf(
			"%d of %d pods are of the former template: the partition %d leaves them as they are", former, all, partition(s))}
	}
	return rollout
}

// formerPods returns how many pods of a StatefulSet or DaemonSet still have a former template, by its status, and how many
// pods it should have. It returns zeros for every other object.
func formerPods(obj client.Object) (former, all int32) {
	switch w := obj.(type) {
	case *appsv1.StatefulSet:
		all = replicas(w)
		return max(min(w.Status.Replicas, all)-w.Status.UpdatedReplicas, 0), all
	case *appsv1.DaemonSet:
		return max(w.Status.CurrentNumberScheduled-w.Status.UpdatedNumberScheduled, 0), w.Status.DesiredNumberScheduled
	}
	return 0, 0
}

// checkStrategy returns how the update strategy of a workload limits a restart: blocked has a reason if no pod would be
// replaced, and partial if only some pods would be replaced.
func checkStrategy(workload client.Object) (blocked, partial Blocker) {
	if isOnDelete(workload) {
		return Blocker{BlockedUpdateStrategy, "its update strategy is OnDelete: a pod is replaced when somebody deletes it"}, partial
	}
	s, ok := workload.(*appsv1.StatefulSet)
	if !ok {
		return blocked, partial
	}
	left, all := min(partition(s), replicas(s)), replicas(s)
	message := fmt.Sprintf("its partition %d leaves %d of %d pods as they are", partition(s), left, all)
	switch left {
	case 0:
		return blocked, partial
	case all:
		return Blocker{BlockedUpdateStrategy, message}, partial
	}
	return blocked, Blocker{BlockedPartition, message}
}

func isPaused(workload client.Object) bool {
	d, ok := workload.(*appsv1.Deployment)
	return ok && d.Spec.Paused
}

func isOnDelete(workload client.Object) bool {
	switch w := workload.(type) {
	case *appsv1.StatefulSet:
		return w.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	case *appsv1.DaemonSet:
		return w.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	}
	return false
}

// partition returns how many pods of a StatefulSet a rolling update does not replace. These are the pods with the
// lowest ordinals.
func partition(s *appsv1.StatefulSet) int32 {
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && !isOnDelete(s) {
		return ptr.Deref(rolling.Partition, 0)
	}
	return 0
}

// replicas returns how many pods a StatefulSet should have. The API server's default is 1.
func replicas(s *appsv1.StatefulSet) int32 { return ptr.Deref(s.Spec.Replicas, 1) }
