package reconciletest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// processCache is what a process has seen of the API server. It moves forward by changes that the
// driver delivers, of each kind on its own.
type processCache struct {
	process *Process
	reader  client.Reader // at the revisions of the kinds
	options cache.Options

	mu      sync.Mutex
	kinds   map[schema.GroupVersionKind]*cachedKind
	all     bool  // every kind is watched, from the start
	noted   int64 // the revision up to which the process was told of changes
	indexes map[schema.GroupVersionKind]map[string]client.IndexerFunc
}

var _ cache.Cache = &processCache{}

func newProcessCache(p *Process) *processCache {
	c := &processCache{
		process: p,
		kinds:   map[schema.GroupVersionKind]*cachedKind{},
		indexes: map[schema.GroupVersionKind]map[string]client.IndexerFunc{},
		noted:   p.run.server.Revision(),
	}
	c.reader = p.run.server.Reader(func(gvk schema.GroupVersionKind) int64 { return c.kind(gvk).seen })
	return c
}

// Get reads what the cache shows.
func (c *processCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(obj, c.process.run.scenario.Scheme)
	if err != nil {
		return err
	}
	k := c.kind(gvk)
	if err := c.reader.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	if !k.selection.has(obj) {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind)}, key.Name)
	}
	return k.selection.transformInPlace(obj)
}

// List lists what the cache shows. Field selectors need an index, as in a real cache.
func (c *processCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, c.process.run.scenario.Scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	k := c.kind(gvk)
	var options client.ListOptions
	options.ApplyOptions(opts)
	matches, err := c.indexed(gvk, &options)
	if err != nil {
		return err
	}
	if err := c.reader.List(ctx, list, &client.ListOptions{Namespace: options.Namespace, LabelSelector: options.LabelSelector}); err != nil {
		return err
	}
	var found []runtime.Object
	for _, item := range itemsOf(list) {
		if !k.selection.has(item) || !matches(item) {
			continue
		}
		if err := k.selection.transformInPlace(item); err != nil {
			return err
		}
		found = append(found, item)
	}
	return meta.SetList(list, found)
}

// otherVersion gives a version of the kind that is watched instead of the one given.
func (c *processCache) otherVersion(gvk schema.GroupVersionKind) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[gvk] != nil {
		return ""
	}
	for other := range c.kinds {
		if other.GroupKind() == gvk.GroupKind() {
			return other.Version
		}
	}
	return ""
}

// indexed gives what a field selector asks for.
func (c *processCache) indexed(gvk schema.GroupVersionKind, options *client.ListOptions) (func(client.Object) bool, error) {
	if options.FieldSelector == nil {
		return func(client.Object) bool { return true }, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var conditions []func(client.Object) bool
	for _, requirement := range options.FieldSelector.Requirements() {
		index, known := c.indexes[gvk][requirement.Field]
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

// IndexField adds an index. A second one of that name is an error, as in a real cache.
func (c *processCache) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(obj, c.process.run.scenario.Scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexes[gvk] == nil {
		c.indexes[gvk] = map[string]client.IndexerFunc{}
	}
	if _, known := c.indexes[gvk][field]; known {
		return fmt.Errorf("indexer conflict: map[field:%s:{}]", field)
	}
	c.indexes[gvk][field] = extract
	return nil
}

// restrict takes what of the options is kept. It must come before the first read.
func (c *processCache) restrict(options cache.Options) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.options = options
	for gvk, k := range c.kinds {
		k.selection = selectionOf(&c.options, gvk, c.process.run.scenario.Scheme)
	}
}

// GetInformer gives the informer of the kind, for the form that obj has: typed, unstructured or
// metadata alone.
func (c *processCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.process.run.scenario.Scheme)
	if err != nil {
		return nil, err
	}
	return c.informer(gvk, formOf(obj))
}

// GetInformerForKind gives the informer for typed objects.
func (c *processCache) GetInformerForKind(_ context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer(gvk, typed)
}

func (c *processCache) informer(gvk schema.GroupVersionKind, f form) (cache.Informer, error) {
	if _, err := c.process.client.live.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return nil, err
	}
	k := c.kind(gvk)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range k.informers {
		if i.form == f {
			return i, nil
		}
	}
	i := &informer{cache: c, kind: k, form: f}
	k.informers = append(k.informers, i)
	return i, nil
}

// RemoveInformer is not supported: an operator that stops to watch is not tested so far.
func (c *processCache) RemoveInformer(context.Context, client.Object) error {
	return fmt.Errorf("reconciletest: RemoveInformer is not supported")
}

// Start waits for the end.
func (c *processCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync is always true.
func (c *processCache) WaitForCacheSync(context.Context) bool { return true }

// handlers gives whom to tell of a change.
func (c *processCache) handlers(k *cachedKind) []handlerOf {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []handlerOf
	informers := slices.SortedFunc(slices.Values(k.informers), func(a, b *informer) int { return cmp.Compare(a.form, b.form) })
	for _, i := range informers {
		for _, h := range i.handlers {
			all = append(all, handlerOf{i, h})
		}
	}
	return all
}

type handlerOf struct {
	informer *informer
	handler  toolscache.ResourceEventHandler
}
