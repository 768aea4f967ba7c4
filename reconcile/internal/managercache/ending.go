// Package managercache changes how the cache of a manager starts.
package managercache

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Ending is the cache that controller-runtime's manager sees. That manager waits for its cache even when its context
// is cancelled, so WaitForCacheSync returns true when Context ends.
type Ending struct {
	cache.Cache
	Scheme  *runtime.Scheme
	Context context.Context
}

// WaitForCacheSync waits until the cache has synced or the context has ended.
func (c *Ending) WaitForCacheSync(ctx context.Context) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.Context, stop)()
	return c.Cache.WaitForCacheSync(ctx) || c.Context.Err() != nil
}

// IndexField needs the kind, unlike the watches of a controller, before the manager starts.
func (c *Ending) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	err := c.Cache.IndexField(ctx, obj, field, extract)
	if kind, unknown := apiutil.GVKForObject(obj, c.Scheme); unknown == nil && meta.IsNoMatchError(err) {
		return ErrNotServed(kind)
	}
	return err
}

// ErrNotServed returns the error for a kind that the API server does not serve. What the API client returns may be about all kinds
// of the group.
func ErrNotServed(kind schema.GroupVersionKind) error {
	noMatch := &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	return fmt.Errorf("the cache cannot start: %w: install its CustomResourceDefinition first (make install)", noMatch)
}
