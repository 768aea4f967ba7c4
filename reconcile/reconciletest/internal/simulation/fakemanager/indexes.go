package fakemanager

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexes are the field indexes of a cache. The zero value is empty.
type indexes struct {
	mu     sync.Mutex
	byKind map[schema.GroupVersionKind]map[string]client.IndexerFunc
}

// add adds an index. A second index of that name is an error.
func (i *indexes) add(gvk schema.GroupVersionKind, field string, extract client.IndexerFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byKind == nil {
		i.byKind = map[schema.GroupVersionKind]map[string]client.IndexerFunc{}
	}
	if i.byKind[gvk] == nil {
		i.byKind[gvk] = map[string]client.IndexerFunc{}
	}
	if _, known := i.byKind[gvk][field]; known {
		return fmt.Errorf("indexer conflict: map[field:%s:{}]", field)
	}
	i.byKind[gvk][field] = extract
	return nil
}

// extract calls the index functions of a kind with an object that the cache is about to show. It does not keep the values: each search
// calls the functions again.
func (i *indexes) extract(gvk schema.GroupVersionKind, obj client.Object) {
	i.mu.Lock()
	functions := slices.Collect(maps.Values(i.byKind[gvk]))
	i.mu.Unlock()
	for _, extract := range functions {
		extract(obj)
	}
}

// matcher returns a function that reports whether an object matches a field selector. If the selector is nil, every object matches.
func (i *indexes) matcher(gvk schema.GroupVersionKind, selector fields.Selector) (func(client.Object) bool, error) {
	if selector == nil {
		return func(client.Object) bool { return true }, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var conditions []func(client.Object) bool
	for _, requirement := range selector.Requirements() {
		index, known := i.byKind[gvk][requirement.Field]
		if !known {
			return nil, fmt.Errorf("Index with name field:%s does not exist", requirement.Field) //nolint:staticcheck // these are controller-runtime's words
		}
		conditions = append(conditions, func(obj client.Object) bool { return slices.Contains(index(obj), requirement.Value) })
	}
	return func(obj client.Object) bool {
		for _, matches := range conditions {
			if !matches(obj) {
				return false
			}
		}
		return true
	}, nil
}
