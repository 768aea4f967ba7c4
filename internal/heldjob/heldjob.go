// Package heldjob implements the life of a Job that has to run only once. The steps that create such Jobs use it: RunOnce of package
// ownedresources, and package scheduledjobs.
//
//	hold ──▶ create ──▶ the owner records the Job ──▶ start ──▶ Complete or Failed
//
// A held Job is one that was created suspended. Its annotation opblocks.dev/held has the value of spec.suspend that the Job gets when it is
// started. The owner records the Job before it is started. So if the process dies in between, no run is forgotten, and none is started
// twice.
package heldjob

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// Hold suspends a Job that is about to be created, typed or unstructured, and adds the annotation opblocks.dev/held. It changes obj.
func Hold(obj client.Object) {
	staysSuspended := false
	switch job := obj.(type) {
	case *batchv1.Job:
		staysSuspended = job.Spec.Suspend != nil && *job.Spec.Suspend
		job.Spec.Suspend = new(true)
	case *unstructured.Unstructured:
		spec, ok := job.Object["spec"].(map[string]any)
		if !ok {
			return // the API server refuses such an object
		}
		staysSuspended, _ = spec["suspend"].(bool)
		spec["suspend"] = true
	}
	annotations := map[string]string{} // a copy, because the map may belong to the owner in the cache
	maps.Copy(annotations, obj.GetAnnotations())
	annotations[record.Held] = strconv.FormatBool(staysSuspended)
	obj.SetAnnotations(annotations)
}

// IsHeld reports whether a Job was created suspended and not started yet.
func IsHeld(job client.Object) bool {
	_, held := job.GetAnnotations()[record.Held]
	return held
}

// End returns the condition Complete or Failed of a Job that has ended. If the Job has not ended, it returns nil.
func End(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

// Start starts a held Job, and reads the started Job into answer, which must be empty. If the Job is no longer held, or was deleted, the
// error is a conflict. The resource version is not a precondition of the patch, because the Job controller writes the status of a suspended
// Job as soon as it sees the Job.
func Start(ctx context.Context, c client.Client, job, answer client.Object, options ...client.PatchOption) error {
	annotation := "/metadata/annotations/" + strings.ReplaceAll(record.Held, "/", "~1")
	staysSuspended := job.GetAnnotations()[record.Held]
	operations := []map[string]any{
		{"op": "test", "path": "/metadata/deletionTimestamp", "value": nil},
		{"op": "test", "path": annotation, "value": staysSuspended},
		{"op": "remove", "path": annotation},
		{"op": "replace", "path": "/spec/suspend", "value": staysSuspended == strconv.FormatBool(true)},
	}
	if uid := job.GetUID(); uid != "" { // an object of controller-runtime's fake client has no UID
		operations = append([]map[string]any{{"op": "test", "path": "/metadata/uid", "value": uid}}, operations...)
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	answer.SetNamespace(job.GetNamespace())
	answer.SetName(job.GetName())
	switch err := c.Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch), options...); {
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err): // invalid means that a test operation of the patch has failed
		return apierrors.NewConflict(batchv1.Resource("jobs"), job.GetName(), fmt.Errorf("it was changed or deleted, and the cache does not show that yet: %w", err))
	case err != nil:
		return fmt.Errorf("start Job %s: %w", job.GetName(), err)
	}
	return nil
}

// IsCollected reports whether the garbage collector deletes or orphans the pods of a Job before the Job is gone.
func IsCollected(job client.Object) bool {
	for _, f := range job.GetFinalizers() {
		if f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents {
			return true
		}
	}
	return false
}
