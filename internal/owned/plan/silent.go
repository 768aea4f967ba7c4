package plan

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// If a request drops certain fields, the API server keeps them and reports no error. This file handles the fields among them that change
// how the object behaves.

// SilentRefusal returns an error if the live object keeps a field that is not desired any more. The error is Invalid, as if the API server
// had refused the change.
//
// A headless Service stays headless when the builder drops clusterIP: the API server copies clusterIP: None from the live object.
func SilentRefusal(d *owned.Desired, live client.Object) error {
	if clusterIPOf(live) != corev1.ClusterIPNone || !wantsClusterIP(d.Full) {
		return nil
	}
	return apierrors.NewInvalid(d.Kind.GVK.GroupKind(), d.Object.GetName(), field.ErrorList{field.Invalid(
		field.NewPath("spec", "clusterIP"), corev1.ClusterIPNone,
		"the live Service is headless, which is immutable, and the desired one is not: set clusterIP: None, choose another name, or let the operator recreate it with Recreate")})
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

// wantsClusterIP reports whether a desired Service is to get a cluster IP.
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

// withCopiedFields sets the fields of an object that the API server would fill with copies of other fields. Otherwise nobody would own the
// copy. After a drop of the other field, the API server would restore it from the copy.
//
// A pod's serviceAccountName is copied to its older name, serviceAccount. If only the older one is set, it is copied to serviceAccountName.
func withCopiedFields(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if pod := podSpecIn(u); pod != nil {
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

// copyIfUnset copies the string in one field to another field that is empty.
func copyIfUnset(fields map[string]any, from, to string) {
	name, _ := fields[from].(string)
	if unset := fields[to] == nil || fields[to] == ""; unset && name != "" {
		fields[to] = name
	}
}

// podSpecIn returns the pod spec of an unstructured object of a kind that Kubernetes has. If the object has no pod spec, it returns nil.
func podSpecIn(u *unstructured.Unstructured) (spec map[string]any) {
	holder := u.Object
	if kind := u.GroupVersionKind().GroupKind(); kind != (schema.GroupKind{Kind: "Pod"}) {
		path, known := owned.PodTemplatePaths[kind]
		if !known {
			return nil
		}
		template, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		holder, _ = template.(map[string]any)
	}
	spec, _ = holder["spec"].(map[string]any)
	return spec
}

// podSpecOf returns the pod spec of a typed object. If the object has no pod spec, it returns nil.
func podSpecOf(obj client.Object) *corev1.PodSpec {
	if pod, ok := obj.(*corev1.Pod); ok {
		return &pod.Spec
	}
	if template := owned.PodTemplate(obj); template != nil {
		return &template.Spec
	}
	return nil
}
