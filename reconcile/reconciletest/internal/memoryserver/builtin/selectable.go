package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selectable are the fields of built-in kinds that field selectors may use. Each field has the value that it counts as if it is absent. The
// API server has a few more fields, whose names in selectors are not their paths.
var selectable = map[schema.GroupVersionKind]map[string]string{
	corev1.SchemeGroupVersion.WithKind("Pod"): {
		"spec.nodeName": "", "spec.restartPolicy": "", "spec.schedulerName": "", "spec.serviceAccountName": "", "spec.hostNetwork": "false",
		"status.phase": "", "status.podIP": "", "status.nominatedNodeName": "",
	},
	corev1.SchemeGroupVersion.WithKind("Event"): {
		"involvedObject.kind": "", "involvedObject.namespace": "", "involvedObject.name": "", "involvedObject.uid": "",
		"involvedObject.apiVersion": "", "involvedObject.resourceVersion": "", "involvedObject.fieldPath": "",
		"reason": "", "reportingComponent": "", "type": "",
	},
	eventsv1.SchemeGroupVersion.WithKind("Event"): {
		"regarding.kind": "", "regarding.namespace": "", "regarding.name": "", "regarding.uid": "",
		"regarding.apiVersion": "", "regarding.resourceVersion": "", "regarding.fieldPath": "",
		"reason": "", "reportingController": "", "type": "",
	},
	corev1.SchemeGroupVersion.WithKind("Node"):       {"spec.unschedulable": "false"},
	corev1.SchemeGroupVersion.WithKind("Namespace"):  {"status.phase": ""},
	corev1.SchemeGroupVersion.WithKind("Secret"):     {"type": ""},
	corev1.SchemeGroupVersion.WithKind("Service"):    {"spec.clusterIP": "", "spec.type": ""},
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"): {"status.replicas": "0"},
}
