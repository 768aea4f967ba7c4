package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/opblocks/opblocks/internal/cacheselection"
	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/reconcile/internal/compaction"
	"github.com/opblocks/opblocks/reconcile/internal/managercache"
	"github.com/opblocks/opblocks/reconcile/internal/requestlog"
)

// NewManager returns a manager of controller-runtime. It differs in five ways:
//   - Start returns a short error if a permission to list or watch is missing. The plain manager would wait for
//     its cache for ever, or run without seeing any change. The error satisfies apierrors.IsForbidden.
//   - Start returns a short error if the API server does not serve the kind of a reconciler. The plain manager
//     would log an error with a stack trace every ten seconds. The error satisfies meta.IsNoMatchError.
//   - Start returns when its context is cancelled before the cache has started.
//   - Its readiness endpoint (/readyz at HealthProbeBindAddress) reports an error until the caches have synced. With EnableWarmup of
//     config.Controller these are the caches of all controllers, also while another replica leads. Without EnableWarmup, a replica that
//     waits to lead has not started its caches, and is ready. If an operator serves the conversion webhook of a kind that it caches, it
//     would never become ready: the API server needs the webhook to answer the cache. Such an operator should replace the check by
//     mgr.AddReadyzCheck("caches", healthz.Ping) of controller-runtime's package healthz.
//   - Its loggers log nothing at level 8 and above, so that client-go does not log the bodies of requests, with the passwords in them.
//
// A replica stays ready while it cannot reach the API server. Otherwise all replicas would become unready at once, and their metrics
// could not be read. If a leader cannot renew its lease, its process ends. The next process is not ready before the API server answers.
func NewManager(config *rest.Config, options ctrl.Options, more ...ManagerOption) (ctrl.Manager, error) {
	for _, option := range more {
		if err := option(&options); err != nil {
			return nil, err
		}
	}
	m := &manager{refused: make(managercache.Refusals, 1), cacheOptions: options.Cache}
	m.ending, m.end = context.WithCancel(context.Background()) //nolint:gosec // Start calls end
	newInformer := options.Cache.NewInformer
	if newInformer == nil {
		newInformer = toolscache.NewSharedIndexInformer
	}
	options.Cache.NewInformer = func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return newInformer(m.refused.Observe(lw), obj, resync, indexers)
	}
	newCache := options.NewCache
	if newCache == nil {
		newCache = cache.New
	}
	options.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		var err error
		m.cache, err = newCache(config, options)
		return &managercache.Ending{Cache: m.cache, Scheme: options.Scheme, Context: m.ending}, err
	}
	if options.Logger.GetSink() == nil {
		options.Logger = log.Log
	}
	options.Logger = requestlog.WithoutBodies(options.Logger)
	var err error
	if m.Manager, err = ctrl.NewManager(config, options); err != nil {
		return nil, err
	}
	if err := m.AddReadyzCheck("caches", m.cachesSynced); err != nil {
		return nil, err
	}
	return m, nil
}

type manager struct {
	ctrl.Manager
	cache   cache.Cache
	warming atomic.Int32 // the number of controllers whose warm-up goes on
	refused managercache.Refusals
	ending  context.Context
	end     context.CancelFunc
	kinds   []schema.GroupVersionKind // the kinds of the reconcilers

	cacheOptions cache.Options // say which objects the cache holds
}

var _ cacheselection.Manager = &manager{}

// CacheSelection returns which objects of a kind the cache holds. Package ownedresources creates only children that the cache holds.
func (m *manager) CacheSelection(gvk schema.GroupVersionKind) cacheselection.Selection {
	return cacheselection.ForKind(&m.cacheOptions, gvk, m.GetScheme())
}

// addKind adds the kind of a reconciler. The API server has to serve the kind when the manager starts.
func (m *manager) addKind(kind schema.GroupVersionKind) { m.kinds = append(m.kinds, kind) }

// requireServed returns an error if the API server does not serve the kind of a reconciler. If the API server cannot be
// reached, requireServed returns nil, and the cache tries again.
func (m *manager) requireServed() error {
	for _, kind := range m.kinds {
		if _, err := m.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			return managercache.ErrNotServed(kind)
		}
	}
	return nil
}

// GetCache returns the cache itself, and not the wrapper managercache.Ending.
func (m *manager) GetCache() cache.Cache { return m.cache }

func (m *manager) Start(ctx context.Context) error {
	if err := m.requireServed(); err != nil {
		return err
	}
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
		<-done //nolint:errcheck // it ends because it was stopped
		return fmt.Errorf("the cache cannot start: %w: add the permission to the operator's role", refused)
	}
}

// syncCheckTimeout is how long a readiness check waits for the caches. It is shorter than the default timeout of a readiness probe, which
// is a second.
const syncCheckTimeout = 200 * time.Millisecond

// cachesSynced is the readiness check of the manager. It returns an error until all controllers have ended their warm-up and
// all informers that have been started have synced. A controller without EnableWarmup ends its warm-up at once.
func (m *manager) cachesSynced(request *http.Request) error {
	if n := m.warming.Load(); n > 0 {
		return fmt.Errorf("%d controllers wait for their caches", n)
	}
	ctx, cancel := context.WithTimeout(request.Context(), syncCheckTimeout)
	defer cancel()
	if !m.cache.WaitForCacheSync(ctx) {
		return errors.New("the caches have not synced")
	}
	return nil
}

// Add adds a runnable. If it is a controller, the manager is not ready before its warm-up has ended.
func (m *manager) Add(runnable ctrlmanager.Runnable) error {
	c, ok := runnable.(warmupRunnable)
	if !ok {
		return m.Manager.Add(runnable)
	}
	m.warming.Add(1)
	return m.Manager.Add(&warmingController{warmupRunnable: c, manager: m})
}

// warmupRunnable has the methods by which controller-runtime's manager identifies a controller.
type warmupRunnable interface {
	ctrlmanager.Runnable
	ctrlmanager.LeaderElectionRunnable
	Warmup(ctx context.Context) error
}

// warmingController is a controller that reports the end of its warm-up to the manager. The manager calls Warmup once.
type warmingController struct {
	warmupRunnable
	manager *manager
}

// Warmup starts the controller's watches and returns when their caches have synced, if EnableWarmup is set.
func (c *warmingController) Warmup(ctx context.Context) error {
	err := c.warmupRunnable.Warmup(ctx)
	if err == nil {
		c.manager.warming.Add(-1)
	}
	return err
}

// ManagerOption is an option of [NewManager], such as [HashLargeValues].
type ManagerOption func(*ctrl.Options) error

// HashLargeValues keeps large Secrets and ConfigMaps out of the cache. Otherwise anybody who may write one in a namespace that the operator
// watches can fill the operator's memory. If the keys and values of an object have more than bound bytes, the cache holds a hash instead of
// each value. 64 << 10 is a good bound. A bound that is not positive is an error of NewManager.
//
// The manager's client and its cache return such an object with its values, which they read from the API server, with one request for each
// object. The operator needs the permission to get it. A child of package ownedresources is compared by the hashes, which costs no request
// while the child is as desired. Predicates, functions that map events to requests, and index functions get the hashes. A changed value has
// another hash, so predicates that compare the data work. An object with hashes has an annotation that the API server refuses. So if
// somebody writes such an object, the write fails, and no hash gets into the cluster.
func HashLargeValues(bound int) ManagerOption {
	return func(options *ctrl.Options) error {
		if bound <= 0 {
			return fmt.Errorf("HashLargeValues(%d): the bound is a number of bytes, and must be positive: use 64 << 10", bound)
		}
		newCache := options.NewCache
		if newCache == nil {
			newCache = cache.New
		}
		options.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			live, err := client.New(config, client.Options{HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper})
			if err != nil {
				return nil, err
			}
			cached, err := newCache(config, hashedvalues.Options(options, bound))
			return &hashedvalues.Cache{Cache: cached, Live: live}, err
		}
		return nil
	}
}

// CacheOptions returns options for the cache of a manager. The cache keeps objects small by [TransformCompact]. It holds the
// objects of these namespaces. Without namespaces it holds the objects of all namespaces.
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

// TransformCompact returns a function that makes objects smaller before a cache keeps them. It removes the managed fields,
// which no package of this module reads from a cache, with one exception: if somebody has cleared the managed fields of a
// child of package ownedresources, the cache keeps the managed fields that were written since, until the operator of the child
// has repaired them. Equal strings of all objects of the cache share their memory. Pointers to empty structs, such as the
// security context of most pods, share their memory too. Equal maps of strings within one object, such as the labels, the
// selector and the pod labels of a Deployment, also share their memory. Nothing else changes. Use the function as the
// DefaultTransform of cache.Options:
//
//	cache.Options{DefaultTransform: reconcile.TransformCompact()}
//
// As always, do not write to objects that were read without a copy (client.UnsafeDisableDeepCopy): their maps and empty structs
// may be shared. A copy has its own maps and structs. If a transform of your own writes to maps or empty structs, it must come
// before this one.
func TransformCompact() toolscache.TransformFunc {
	var strings compaction.Strings
	return func(obj any) (any, error) {
		object, ok := obj.(metav1.Object)
		if !ok { // the cache may pass a tombstone, whose object was transformed before
			return obj, nil
		}
		if object.GetManagedFields() != nil && !fieldmanager.AreCleared(object) {
			object.SetManagedFields(nil)
		}
		strings.Compact(obj)
		return obj, nil
	}
}
