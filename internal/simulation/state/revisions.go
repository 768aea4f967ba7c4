package state

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isRevision reports whether the controller of a workload stored an object as one of its revisions. These record which pod
// templates there were, not what exists.
func isRevision(obj client.Object) bool {
	if obj.GetObjectKind().GroupVersionKind() != appsv1.SchemeGroupVersion.WithKind("ControllerRevision") {
		return false
	}
	owner := metav1.GetControllerOf(obj)
	return owner != nil && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

// simplifyRevisions replaces the names of the revisions in the status of a StatefulSet. They contain a hash of the pod
// template, which is compared itself. Whether the two revisions differ is compared too.
func simplifyRevisions(u *unstructured.Unstructured) {
	if u.GroupVersionKind() != appsv1.SchemeGroupVersion.WithKind("StatefulSet") {
		return
	}
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
