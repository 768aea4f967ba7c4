package ownedresources

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// setsReplicas reports whether a scalable object says how many replicas it wants.
func setsReplicas(obj client.Object) bool {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return obj.Spec.Replicas != nil
	case *appsv1.StatefulSet:
		return obj.Spec.Replicas != nil
	case *appsv1.ReplicaSet:
		return obj.Spec.Replicas != nil
	case *unstructured.Unstructured:
		replicas, found, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "replicas")
		return err == nil && found && replicas != nil
	}
	return false
}
