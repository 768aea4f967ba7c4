package controller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
)

var serviceMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}

// serviceMonitor returns the ServiceMonitor of a Cache, for the Prometheus operator.
func serviceMonitor(c *storev1alpha1.Cache) *unstructured.Unstructured {
	matching := map[string]any{}
	for key, value := range ownedresources.Labels(c) {
		matching[key] = value
	}
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector":  map[string]any{"matchLabels": matching},
		"endpoints": []any{map[string]any{"port": metricsPort}},
	}}}
	meta := ownedresources.ObjectMeta(c)
	m.SetNamespace(meta.Namespace)
	m.SetName(meta.Name)
	m.SetLabels(meta.Labels)
	return m
}
