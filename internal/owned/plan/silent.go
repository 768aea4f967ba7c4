package plan

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// The API server keeps some fields although they are dropped, and says nothing. This file is about the fields that
// change what the object does.

// SilentRefusal returns an error if the live object keeps a field that is not desired any more. The error is Invalid,
// as if the API server had refused the change.
//
// A headless Service stays headless when clusterIP is dropped: the API server copies clusterIP: None from the live
// object.
func SilentRefusal(d *owned.Desired, live client.Object) error {
	if clusterIPOf(live) != corev1.ClusterIPNone || !wantsClusterIP(d.Full) {
		return nil
	}
	return apierrors.NewInvalid(d.Kind.GVK.GroupKind(), d.Object.GetName(), field.ErrorList{field.Invalid(
		field.NewPath("spec", "clusterIP"), corev1.ClusterIPNone,
		"the live Service is headless, which is immutable, and the desired one is not: set clusterIP: None, choose another name, or allow to Recreate it")})
}

func clusterIPOf(obj client.Object) string {
	switch obj := obj.(type) {
	case *corev1.Service:
		return obj.Spec.ClusterIP
	case *unstructured.Unstructured:
		if obj.GetKind() == "Service" && obj.GetAPIVersion() == "v1" {
			ip, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterIP")
			return ip
		}
	}
	return ""
}

// wantsClusterIP reports whether a Service is to have an address of its own.
func wantsClusterIP(obj client.Object) bool {
	typ := corev1.ServiceType("")
	switch obj := obj.(type) {
	case *corev1.Service:
		typ = obj.Spec.Type
	case *unstructured.Unstructured:
		text, _, _ := unstructured.NestedString(obj.Object, "spec", "type")
		typ = corev1.ServiceType(text)
	}
	return clusterIPOf(obj) == "" && typ != corev1.ServiceTypeExternalName
}

// withCopiedFields copies, in an object that is sent, the fields that the API server copies to another field. Otherwise
// nobody would own the copy, and it would bring the field back after that is dropped.
//
// A pod's serviceAccountName is copied to its older name, serviceAccount. If only the older one is set, it is copied to
// serviceAccountName.
func withCopiedFields(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		path, known := podSpecPaths[u.GroupVersionKind().GroupKind()]
		if !known {
			return
		}
		spec, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		if pod, ok := spec.(map[string]any); ok {
			copyIfUnset(pod, "serviceAccountName", "serviceAccount")
			copyIfUnset(pod, "serviceAccount", "serviceAccountName")
		}
		return
	}
	if pod := podSpecOf(obj); pod != nil {
		pod.ServiceAccountName = cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount)
		pod.DeprecatedServiceAccount = cmp.Or(pod.DeprecatedServiceAccount, pod.ServiceAccountName)
	}
}

// copyIfUnset copies the text of one field to another that has none.
func copyIfUnset(fields map[string]any, from, to string) {
	name, _ := fields[from].(string)
	if unset := fields[to] == nil || fields[to] == ""; unset && name != "" {
		fields[to] = name
	}
}

var podSpecPaths = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {"spec"},
	{Kind: "PodTemplate"}:                {"template", "spec"},
	{Kind: "ReplicationController"}:      {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

func podSpecOf(obj client.Object) *corev1.PodSpec {
	switch obj := obj.(type) {
	case *corev1.Pod:
		return &obj.Spec
	case *corev1.PodTemplate:
		return &obj.Template.Spec
	case *corev1.ReplicationController:
		if obj.Spec.Template != nil {
			return &obj.Spec.Template.Spec
		}
	case *appsv1.Deployment:
		return &obj.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &obj.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &obj.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &obj.Spec.Template.Spec
	case *batchv1.Job:
		return &obj.Spec.Template.Spec
	case *batchv1.CronJob:
		return &obj.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}
