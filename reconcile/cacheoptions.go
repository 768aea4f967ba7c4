package reconcile

import "sigs.k8s.io/controller-runtime/pkg/cache"

// CacheOptions are those of a manager's cache that holds some namespaces, or all if none is given,
// and no managed fields: they would be a third of it, and no step reads them.
func CacheOptions(namespaces ...string) cache.Options {
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
