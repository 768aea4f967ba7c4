package ownedresources

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepAnnotations copies annotations from the live object, and from its pod template, into the desired ones.
func keepAnnotations(live, desired client.Object, keys []string) {
	desired.SetAnnotations(withLive(live.GetAnnotations(), desired.GetAnnotations(), keys))
	if from, to := podMetadata(live), podMetadata(desired); from != nil && to != nil {
		to.Annotations = withLive(from.Annotations, to.Annotations, keys)
		return
	}
	to, untyped := desired.(*unstructured.Unstructured)
	from, _ := live.(*unstructured.Unstructured)
	if !untyped || from == nil {
		return
	}
	path := []string{"spec", "template", "metadata", "annotations"}
	has, _, _ := unstructured.NestedStringMap(from.Object, path...)
	want, _, _ := unstructured.NestedStringMap(to.Object, path...)
	if kept := withLive(has, want, keys); len(kept) > 0 {
		_ = unstructured.SetNestedStringMap(to.Object, kept, path...) // a template that is not a map is refused when it is applied
	}
}

// withLive returns the desired annotations with the live values of some keys.
func withLive(live, desired map[string]string, keys []string) map[string]string {
	kept := maps.Clone(desired) // the builder may share it
	for _, key := range keys {
		if value, found := live[key]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// podMetadata returns the metadata of the pod template of a workload, and nil for other types.
func podMetadata(obj client.Object) *metav1.ObjectMeta {
	switch w := obj.(type) {
	case *appsv1.Deployment:
		return &w.Spec.Template.ObjectMeta
	case *appsv1.StatefulSet:
		return &w.Spec.Template.ObjectMeta
	case *appsv1.DaemonSet:
		return &w.Spec.Template.ObjectMeta
	case *batchv1.Job:
		return &w.Spec.Template.ObjectMeta
	case *batchv1.CronJob:
		return &w.Spec.JobTemplate.Spec.Template.ObjectMeta
	}
	return nil
}
