package owned

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodTemplatePaths are the paths of the pod templates in unstructured objects of the kinds that Kubernetes has.
var PodTemplatePaths = map[schema.GroupKind][]string{
	{Kind: "PodTemplate"}:                {"template"},
	{Kind: "ReplicationController"}:      {"spec", "template"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// PodTemplate returns the pod template of a typed object of Kubernetes. For any other object, or one without a pod template, it returns
// nil.
func PodTemplate(obj client.Object) *corev1.PodTemplateSpec {
	switch obj := obj.(type) {
	case *corev1.PodTemplate:
		return &obj.Template
	case *corev1.ReplicationController:
		return obj.Spec.Template
	case *appsv1.Deployment:
		return &obj.Spec.Template
	case *appsv1.ReplicaSet:
		return &obj.Spec.Template
	case *appsv1.StatefulSet:
		return &obj.Spec.Template
	case *appsv1.DaemonSet:
		return &obj.Spec.Template
	case *batchv1.Job:
		return &obj.Spec.Template
	case *batchv1.CronJob:
		return &obj.Spec.JobTemplate.Spec.Template
	}
	return nil
}
