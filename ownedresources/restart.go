package ownedresources

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationRestartedAt is what kubectl rollout restart sets on a pod template: pods of an older
// template are replaced.
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Restart replaces the pods of a Deployment, StatefulSet or DaemonSet, whoever owns it, by setting
// [AnnotationRestartedAt] to a time, in whole seconds, and nothing else. Where it says that time
// or a later one already, nothing is sent: a restart that is due at a time happens once, however
// often it is asked for. An [Apply] that does not mention the annotation leaves it.
//
// The patch carries the resource version that workload was read with, so it is a conflict
// (apierrors.IsConflict) when somebody wrote meanwhile: read again. The fields belong to the
// manager given, which should be the operator's own. workload stays as it is.
func Restart(ctx context.Context, c client.Client, workload client.Object, at time.Time, manager client.FieldOwner) (restarted bool, err error) {
	template, err := templateOf(workload)
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

// RestartedAt gives when the pods of a Deployment, StatefulSet or DaemonSet were last told to be
// replaced, by [Restart] or by kubectl; false if never, or if it is no time.
func RestartedAt(workload client.Object) (at time.Time, ok bool) {
	template, err := templateOf(workload)
	if err != nil {
		return time.Time{}, false
	}
	return restartedAt(template)
}

func restartedAt(template *corev1.PodTemplateSpec) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, template.Annotations[AnnotationRestartedAt])
	return at, err == nil
}

func templateOf(workload client.Object) (*corev1.PodTemplateSpec, error) {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Template, nil
	case *appsv1.StatefulSet:
		return &w.Spec.Template, nil
	case *appsv1.DaemonSet:
		return &w.Spec.Template, nil
	}
	return nil, fmt.Errorf("%T has no pods that could be replaced: give a Deployment, StatefulSet or DaemonSet", workload)
}
