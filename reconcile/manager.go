package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewManager is controller-runtime's, whose Start ends with one sentence where a permission to list
// or watch is missing. Otherwise it would wait for its cache for ever, or work on and hear of nothing.
// It also ends when it is told to before the cache has started.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	m := &manager{refused: make(chan error, 1)}
	m.ending, m.end = context.WithCancel(context.Background()) //nolint:gosec // Start calls it when it ends
	newInformer := options.Cache.NewInformer
	if newInformer == nil {
		newInformer = toolscache.NewSharedIndexInformer
	}
	options.Cache.NewInformer = func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return newInformer(m.observe(lw), obj, resync, indexers)
	}
	newCache := options.NewCache
	if newCache == nil {
		newCache = cache.New
	}
	options.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		var err error
		m.cache, err = newCache(config, options)
		return &endingCache{Cache: m.cache, ending: m.ending}, err
	}
	var err error
	if m.Manager, err = ctrl.NewManager(config, options); err != nil {
		return nil, err
	}
	return m, nil
}

type manager struct {
	ctrl.Manager
	cache   cache.Cache
	refused chan error
	ending  context.Context
	end     context.CancelFunc
}

// GetCache gives the cache as it is.
func (m *manager) GetCache() cache.Cache { return m.cache }

// endingCache is what controller-runtime's manager sees. That one waits for its cache even when it
// is told to end, for ever if need be; so it is told that there is nothing to wait for.
type endingCache struct {
	cache.Cache
	ending context.Context
}

func (c *endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.ending, stop)()
	return c.Cache.WaitForCacheSync(ctx) || c.ending.Err() != nil
}

// observe notes the first refusal. A watch that has worked before is retried: somebody may be at the
// roles just now.
func (m *manager) observe(lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	inner := toolscache.ToListerWatcherWithContext(lw)
	var worked atomic.Bool
	note := func(err error) {
		if !apierrors.IsForbidden(err) || worked.Load() {
			return
		}
		select {
		case m.refused <- err:
		default: // the first one is enough
		}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, options)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, options)
			note(err)
			worked.CompareAndSwap(false, err == nil)
			return w, err
		},
	}
}

func (m *manager) Start(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, m.end)()
	done := make(chan error, 1)
	go func() { done <- m.Manager.Start(ctx) }()
	select {
	case err := <-done:
		return err
	case refused := <-m.refused:
		stop(refused)
		<-done //nolint:errcheck // it ends because it was told to
		return fmt.Errorf("the cache cannot start: %w: add the permission to the operator's role", refused)
	}
}
