package fakemanager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Cache is the cache of a process. It shows a change only after [Manager.Deliver] was called for it. Each kind in it has a revision of its
// own.
type Cache struct {
	Kinds   WatchedKinds    // the kinds that the process watches, each with the revision that the cache shows
	context context.Context // the context of the process
	mapper  meta.RESTMapper
	readers map[form]client.Reader // for each form: a reader that returns the objects of each kind at the revision that the cache shows
	indexes indexes

	undefined error // the error about the last kind that the server does not have
}

var _ cache.Cache = &Cache{}

func newCache(o *Options) *Cache {
	c := &Cache{
		Kinds:   WatchedKinds{scheme: o.Scheme, server: o.Server, watched: o.Watched, kinds: map[kindKey]*kind{}, received: o.Server.Revision()},
		context: o.Context, mapper: o.Client.RESTMapper(), readers: map[form]client.Reader{},
	}
	for _, f := range forms {
		c.readers[f] = o.Server.Reader(
			func(gvk schema.GroupVersionKind) int64 { return c.Kinds.kind(gvk, f).seen },
			func(gvk schema.GroupVersionKind, obj client.Object) (client.Object, error) {
				return c.Kinds.kind(gvk, f).hold(obj)
			})
	}
	return c
}

// Get reads an object as the cache shows it. It starts to watch the object's kind.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(obj, c.Kinds.scheme)
	if err != nil {
		return err
	}
	k := c.Kinds.kind(gvk, formOf(obj))
	if _, known := k.selection.SelectorOf(key.Namespace); !known {
		return fmt.Errorf("unable to get: %v because of unknown namespace for the cache", key) // controller-runtime has the same text
	}
	return c.readers[k.form].Get(ctx, key, obj, opts...)
}

// List lists objects as the cache shows them. It starts to watch their kind. Field selectors need an index, as in a real
// cache.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, c.Kinds.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	k := c.Kinds.kind(gvk, formOf(list))
	var options client.ListOptions
	options.ApplyOptions(opts)
	matches, err := c.indexes.matcher(gvk, options.FieldSelector)
	if err != nil {
		return err
	}
	options.FieldSelector = nil
	if err := c.readers[k.form].List(ctx, list, &options); err != nil {
		return err
	}
	var found []runtime.Object
	for _, item := range itemsOf(list) {
		if matches(item) {
			found = append(found, item)
		}
	}
	return meta.SetList(list, found)
}

// IndexField adds an index. A second index of that name is an error, as in a real cache.
func (c *Cache) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(obj, c.Kinds.scheme)
	if err != nil {
		return err
	}
	return c.indexes.add(gvk, field, extract)
}

// GetInformer returns the informer of obj's kind for the Go type of obj: typed, unstructured or metadata.
func (c *Cache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.Kinds.scheme)
	if err != nil {
		return nil, err
	}
	return c.informer(gvk, formOf(obj))
}

// GetInformerForKind returns the kind's informer of typed objects.
func (c *Cache) GetInformerForKind(_ context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer(gvk, typed)
}

func (c *Cache) informer(gvk schema.GroupVersionKind, f form) (cache.Informer, error) {
	if _, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		c.Kinds.mu.Lock()
		defer c.Kinds.mu.Unlock()
		c.undefined = err
		return nil, err
	}
	k := c.Kinds.kind(gvk, f)
	c.Kinds.mu.Lock()
	defer c.Kinds.mu.Unlock()
	if k.informer == nil {
		k.informer = &informer{cache: c, kind: k, shown: map[client.ObjectKey]shownObject{}}
	}
	return k.informer, nil
}

// lastUndefined returns the error about the last kind that the cache refused because the server does not have it. If no kind was refused,
// it returns nil.
func (c *Cache) lastUndefined() error {
	c.Kinds.mu.Lock()
	defer c.Kinds.mu.Unlock()
	return c.undefined
}

// RemoveInformer removes the informer of obj's kind for the Go type of obj, with its handlers.
func (c *Cache) RemoveInformer(_ context.Context, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, c.Kinds.scheme)
	if err != nil {
		return err
	}
	c.Kinds.mu.Lock()
	defer c.Kinds.mu.Unlock()
	if k := c.Kinds.kinds[kindKey{gvk, formOf(obj)}]; k != nil {
		k.informer = nil
	}
	return nil
}

// Start blocks until the context ends.
func (c *Cache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync returns true.
func (c *Cache) WaitForCacheSync(context.Context) bool { return true }

// keys returns the names of all objects of a kind, sorted.
func (c *Cache) keys(ctx context.Context, gvk schema.GroupVersionKind) ([]client.ObjectKey, error) {
	obj, err := c.Kinds.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("list of %s: %w: add it to the scheme", gvk.Kind, err)
	}
	list := obj.(client.ObjectList)
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	var keys []client.ObjectKey
	for _, item := range itemsOf(list) {
		keys = append(keys, client.ObjectKeyFromObject(item))
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return keys, nil
}

func itemsOf(list client.ObjectList) []client.Object {
	var all []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error { // it cannot fail, since the function returns no error
		all = append(all, item.(client.Object))
		return nil
	})
	return all
}
