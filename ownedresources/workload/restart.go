package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/readiness"
)

// AnnotationRestartedAt is the annotation that kubectl rollout restart sets on a pod template. Its value is a time in
// the format of RFC 3339. Setting it changes the template, so the workload's controller replaces all pods.
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Restart replaces the pods of a Deployment, StatefulSet or DaemonSet, whoever owns it. It sets [AnnotationRestartedAt] to at, in whole
// seconds, and nothing else. If an apply of the workload's owner does not set the annotation, it does not change the annotation.
//
// Restart sends nothing and returns false if the annotation already has that time or a later one. So a restart that is
// due at a time happens once, however often Restart is called for it.
//
// Otherwise it sends one patch and returns true. The patch carries the UID and the resource version of workload. If somebody wrote to the
// object since it was read, the error is a conflict (apierrors.IsConflict): read the object and call Restart again. After the patch, the
// annotation belongs to the given field manager, which should be the operator's own.
//
// Restart does not change workload. It returns an error for an object of another type. Errors of the client are wrapped.
func Restart(ctx context.Context, c client.Client, workload client.Object, at time.Time, manager client.FieldOwner) (restarted bool, err error) {
	template, err := podTemplate(workload)
	if err != nil {
		return false, err
	}
	at = at.Truncate(time.Second)
	if last, ok := restartedAt(template); ok && !last.Before(at) {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": workload.GetUID(), "resourceVersion": workload.GetResourceVersion()},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{AnnotationRestartedAt: at.UTC().Format(time.RFC3339)},
		}}},
	})
	if err != nil {
		return false, err
	}
	answer := workload.DeepCopyObject().(client.Object)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), manager); err != nil {
		return false, fmt.Errorf("restart %T %s: %w", workload, client.ObjectKeyFromObject(workload), err)
	}
	return true, nil
}

// RestartedAt returns the time of the last restart of a Deployment, StatefulSet or DaemonSet, by [Restart] or by
// kubectl rollout restart: the value of [AnnotationRestartedAt]. ok is false if the annotation is absent or is not a
// time, and for an object of another type.
func RestartedAt(workload client.Object) (at time.Time, ok bool) {
	template, err := podTemplate(workload)
	if err != nil {
		return time.Time{}, false
	}
	return restartedAt(template)
}

// The values of Reason in a [Blocker].
const (
	// BlockedAlreadyRestarted means that the workload was restarted for a later time.
	BlockedAlreadyRestarted = "AlreadyRestarted"
	// BlockedPaused means that the Deployment is paused. It would replace its pods only after the pause.
	BlockedPaused = "DeploymentPaused"
	// BlockedUpdateStrategy means that the controller of the StatefulSet or DaemonSet replaces no pods by itself: the update strategy is
	// OnDelete, or the partition excludes all pods.
	BlockedUpdateStrategy = "UpdateStrategy"
	// BlockedRolloutInProgress means that the workload is replacing its pods, for any reason.
	BlockedRolloutInProgress = "RolloutInProgress"
	// BlockedNotObserved means that the workload's controller has not observed the last change of the object yet, which
	// may be as small as an annotation. This lasts a moment and ends with an event of the object: check again then
	// instead of skipping the restart.
	BlockedNotObserved = "NotObserved"
	// BlockedPartition means that the partition of the StatefulSet excludes some of its pods. Nothing else blocks the restart. To replace
	// the other pods, call Restart in spite of it.
	BlockedPartition = "Partition"
)

// Blocker explains why a workload should not be restarted, or why some of its pods do not start. The zero value means that no cause is
// known.
type Blocker struct {
	// Reason can be the reason of a condition. It is one of the constants Blocked… from [CheckRestart], or a reason of Kubernetes
	// itself from [CheckStart]. It is empty if nothing blocks.
	Reason string
	// Message is for humans. It does not name the workload.
	Message string
}

// CheckRestart returns what blocks a [Restart] of a Deployment, StatefulSet or DaemonSet that is due at the given time, or the zero
// Blocker. It checks in this order: a later restart, a pause, an update strategy that replaces no pods, a change that the workload's
// controller has not observed yet, a rollout in progress, a partition. A failed rollout does not block a restart, because the restart may
// help.
//
// If the workload already shows a restart at exactly that time, nothing blocks it: the restart was sent earlier, perhaps
// before a crash. [Restart] then sends nothing, and [ObserveRestart] observes its rollout.
//
// A restart whose time is in the future, from a clock that was ahead, blocks all restarts until then. CheckRestart has no clock: if
// [RestartedAt] returns such a time, pass CheckRestart and Restart a copy of the workload without the annotation.
//
// CheckRestart returns an error for an object of another type, and if the scheme does not have the type.
func CheckRestart(workload client.Object, at time.Time, scheme *runtime.Scheme) (Blocker, error) {
	template, err := podTemplate(workload)
	if err != nil {
		return Blocker{}, err
	}
	at = at.Truncate(time.Second)
	last, restarted := restartedAt(template)
	blocked, partial := checkStrategy(workload)
	rollout, err := ObserveRollout(workload, scheme)
	switch {
	case err != nil || restarted && last.Equal(at):
		return Blocker{}, err
	case restarted && last.After(at):
		return Blocker{BlockedAlreadyRestarted, "it was restarted already, at " + last.UTC().Format(time.RFC3339)}, nil
	case isPaused(workload):
		return Blocker{BlockedPaused, "it is paused"}, nil
	case blocked.Reason != "":
		return blocked, nil
	case rollout.Reason == readiness.ReasonNotObserved:
		return Blocker{BlockedNotObserved, "its last change has not been observed yet"}, nil
	case rollout.State == RolloutInProgress:
		return Blocker{BlockedRolloutInProgress, "it is still rolling out"}, nil
	}
	return partial, nil
}

func restartedAt(template *corev1.PodTemplateSpec) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, template.Annotations[AnnotationRestartedAt])
	return at, err == nil
}

func podTemplate(workload client.Object) (*corev1.PodTemplateSpec, error) {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Template, nil
	case *appsv1.StatefulSet:
		return &w.Spec.Template, nil
	case *appsv1.DaemonSet:
		return &w.Spec.Template, nil
	}
	return nil, fmt.Errorf("%T has no pods that could be replaced: pass a Deployment, StatefulSet or DaemonSet", workload)
}
