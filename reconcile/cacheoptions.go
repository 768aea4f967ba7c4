package reconcile

import "sigs.k8s.io/controller-runtime/pkg/cache"

// CacheOptions are those of a manager's cache that holds some namespaces, or all if none is given,
// and keeps objects small ([TransformCompact]).
func CacheOptions(namespaces ...string) cache.Options {
	options := cache.Options{DefaultTransform: TransformCompact()}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
