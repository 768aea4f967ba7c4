// Package managercache wraps the cache of a manager, so that the manager can stop or fail while its cache starts.
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

// Ending is the cache that controller-runtime's manager uses. The manager would wait for its cache even after its own
// context is cancelled. So WaitForCacheSync returns true when Context ends.
type Ending struct {
	cache.Cache
	Scheme  *runtime.Scheme
	Context context.Context
}

// WaitForCacheSync waits until the cache has synced, or ctx or c.Context has ended. After the end of c.Context it returns true.
func (c *Ending) WaitForCacheSync(ctx context.Context) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.Context, stop)()
	return c.Cache.WaitForCacheSync(ctx) || c.Context.Err() != nil
}

// IndexField asks the API server whether it serves the kind, already before the manager starts. A watch of a controller
// does so only after the start.
func (c *Ending) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	err := c.Cache.IndexField(ctx, obj, field, extract)
	if kind, unknown := apiutil.GVKForObject(obj, c.Scheme); unknown == nil && meta.IsNoMatchError(err) {
		return ErrNotServed(kind)
	}
	return err
}

// ErrNotServed returns the error for a kind that the API server does not serve. It replaces the API client's error, which may name
// all kinds of the group.
func ErrNotServed(kind schema.GroupVersionKind) error {
	noMatch := &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	return fmt.Errorf("the cache cannot start: %w: install its CustomResourceDefinition first (make install)", noMatch)
}
