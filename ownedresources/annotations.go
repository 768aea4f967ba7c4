package ownedresources

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// keepAnnotations copies annotations from the live object and its pod template into the desired object and
// its pod template.
func keepAnnotations(live, desired client.Object, keys []string) {
	desired.SetAnnotations(withLive(live.GetAnnotations(), desired.GetAnnotations(), keys))
	if from, to := owned.PodTemplate(live), owned.PodTemplate(desired); from != nil && to != nil {
		to.Annotations = withLive(from.Annotations, to.Annotations, keys)
	}
	to, untyped := desired.(*unstructured.Unstructured)
	from, _ := live.(*unstructured.Unstructured)
	if !untyped || from == nil {
		return
	}
	path, known := owned.PodTemplatePaths[to.GroupVersionKind().GroupKind()]
	if !known { // custom workloads have their pod template there
		path = []string{"spec", "template"}
	}
	path = append(slices.Clip(path), "metadata", "annotations")
	has, _, _ := unstructured.NestedStringMap(from.Object, path...)
	want, _, _ := unstructured.NestedStringMap(to.Object, path...)
	if kept := withLive(has, want, keys); len(kept) > 0 {
		_ = unstructured.SetNestedStringMap(to.Object, kept, path...) // a template that is not a map: the API server refuses it
	}
}

// withLive returns a copy of the desired annotations. It replaces the values of these keys by the live values, where
// the live object has them.
func withLive(live, desired map[string]string, keys []string) map[string]string {
	kept := maps.Clone(desired) // the builder may share the map
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
