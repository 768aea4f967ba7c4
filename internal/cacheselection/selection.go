// Package cacheselection tells which objects a manager's cache holds, from the options of the cache.
package cacheselection

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Manager is a manager that knows the options of its cache: the manager of package reconcile, and the one of reconciletest's explorations.
type Manager interface {
	// CacheSelection says which objects of a kind the cache holds.
	CacheSelection(gvk schema.GroupVersionKind) Selection
}

// Selection says which objects of a kind a cache holds, and how it transforms them. The zero value selects all objects, and transforms
// none.
type Selection struct {
	Transform toolscache.TransformFunc // nil if the objects are not transformed

	namespaces map[string]labels.Selector // by namespace; nil for all namespaces
	selector   labels.Selector            // nil for all objects
}

// ForKind returns the Selection for a kind in a cache with these options.
func ForKind(options *cache.Options, gvk schema.GroupVersionKind, scheme *runtime.Scheme) Selection {
	s := Selection{selector: options.DefaultLabelSelector, Transform: options.DefaultTransform}
	namespaces := options.DefaultNamespaces
	for obj, of := range options.ByObject {
		kind, err := apiutil.GVKForObject(obj, scheme)
		if err != nil || kind != gvk {
			continue
		}
		if of.Label != nil {
			s.selector = of.Label
		}
		if of.Transform != nil {
			s.Transform = of.Transform
		}
		if of.Namespaces != nil {
			namespaces = of.Namespaces
		}
	}
	if len(namespaces) > 0 {
		s.namespaces = map[string]labels.Selector{}
		for namespace := range maps.Keys(namespaces) {
			s.namespaces[namespace] = namespaces[namespace].LabelSelector
		}
	}
	return s
}

// Holds reports whether the cache holds the object.
func (s *Selection) Holds(obj client.Object) bool {
	selector, known := s.SelectorOf(obj.GetNamespace())
	return known && (selector == nil || selector.Matches(labels.Set(obj.GetLabels())))
}

// SelectorOf returns the label selector that the cache uses for a namespace. An empty namespace stands for the cluster-scoped objects. A
// nil selector selects all objects. If the cache holds no object of the namespace, known is false.
func (s *Selection) SelectorOf(namespace string) (selector labels.Selector, known bool) {
	if s.namespaces == nil || namespace == "" {
		return s.selector, true
	}
	own, known := s.namespaces[namespace]
	if !known {
		own, known = s.namespaces[cache.AllNamespaces]
	}
	if own == nil {
		own = s.selector
	}
	return own, known
}

// WatchedNamespaces returns the namespaces that the cache watches. [cache.AllNamespaces] stands for all.
func (s *Selection) WatchedNamespaces() []string {
	if s.namespaces == nil {
		return []string{cache.AllNamespaces}
	}
	return slices.Sorted(maps.Keys(s.namespaces))
}
