package state

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isRevision reports whether an object is a revision: a ControllerRevision, or a ReplicaSet of a Deployment. The controllers of workloads
// store pod templates in them. Revisions are not compared: the workload and its pods are compared. A revision has no owner if its workload
// was deleted and left its dependents.
func isRevision(obj client.Object) bool {
	owner := metav1.GetControllerOf(obj)
	switch obj.GetObjectKind().GroupVersionKind() {
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):
		return obj.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey] != "" && (owner == nil || owner.Kind == "Deployment")
	case appsv1.SchemeGroupVersion.WithKind("ControllerRevision"):
	default:
		return false
	}
	return owner == nil && obj.GetLabels()[revisionHashLabel] != "" || owner != nil && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

// revisionHashLabel is a label that the controllers of workloads set on their revisions.
const revisionHashLabel = "controller.kubernetes.io/hash"

// simplifyBuiltIn removes fields of built-in kinds that depend on the earlier states of an object.
func simplifyBuiltIn(u *unstructured.Unstructured) {
	switch u.GroupVersionKind() {
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		simplifyRevisions(u)
	case batchv1.SchemeGroupVersion.WithKind("Job"):
		removeResumed(u)
	case corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"):
		removeAllocated(u)
	}
}

// removeAllocated removes the fields in the status of a claim that say how it was resized. A claim that was created in its present size
// never has these fields.
func removeAllocated(u *unstructured.Unstructured) {
	for _, field := range []string{"allocatedResources", "allocatedResourceStatuses"} {
		unstructured.RemoveNestedField(u.Object, "status", field)
	}
}

// removeResumed removes the condition that says that a Job is no longer suspended. A Job has it only if the Job controller has seen the Job
// suspended, which depends on timing.
func removeResumed(u *unstructured.Unstructured) {
	conditions, found, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if !found {
		return
	}
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == string(batchv1.JobSuspended) && condition["status"] == "False"
	})
	if unstructured.RemoveNestedField(u.Object, "status", "conditions"); len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions") // the status exists
	}
}

// simplifyRevisions replaces the names of the revisions in the status of a StatefulSet. They contain a hash of the pod
// template, which is compared itself. Whether the two revisions differ is compared too.
func simplifyRevisions(u *unstructured.Unstructured) {
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	update, found := status["updateRevision"]
	if !found {
		return
	}
	if status["currentRevision"] == update {
		status["currentRevision"] = "that of the update"
	} else {
		status["currentRevision"] = "an earlier one"
	}
	status["updateRevision"] = "that of the pod template"
	u.Object["status"] = status
}
