package servedkinds

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/managervalues"
)

// startRetry is the delay before the next attempt to start an informer.
const startRetry = 10 * time.Second

// Kinds starts and stops the informers of kinds that the API server may not serve. There is one Kinds per manager: see [ForManager]. It is
// safe for concurrent use.
type Kinds struct {
	cache       informers
	scheme      *runtime.Scheme
	mapper      meta.RESTMapper
	discovery   discoverer
	definitions *definitions // nil in some tests
	logger      logr.Logger
	period      time.Duration

	wake       chan struct{}  // has a value if the loop of Start has something to do
	goroutines sync.WaitGroup // the goroutines that the loop of Start has started

	mu        sync.Mutex
	kinds     map[key]*kind
	schedules map[schema.GroupVersion]*schedule
}

// informers are the methods of the manager's cache that this package uses.
type informers interface {
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
	RemoveInformer(ctx context.Context, obj client.Object) error
	IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error
}

// key identifies an informer of the cache.
type key struct {
	gvk  schema.GroupVersionKind
	form reflect.Type
}

// managers has the Kinds of each manager of this process. If a manager had two, they would remove each other's informers.
var managers managervalues.Values[*Kinds]

// ForManager returns the Kinds of a manager. The manager starts and stops it. ForManager sends no request.
func ForManager(mgr ctrl.Manager) (*Kinds, error) {
	return managers.Of(mgr, func() (*Kinds, error) {
		resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return nil, fmt.Errorf("client for discovery: %w", err)
		}
		metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
		if err != nil {
			return nil, fmt.Errorf("client for the metadata of CustomResourceDefinitions: %w", err)
		}
		k := newKinds(mgr.GetCache(), mgr.GetScheme(), mgr.GetRESTMapper(), discoveryClient{resources.RESTClient()}, mgr.GetLogger().WithName("servedkinds"))
		k.definitions = &definitions{client: metadataClient, changed: k.definitionChanged}
		return k, nil
	})
}

func newKinds(c informers, scheme *runtime.Scheme, mapper meta.RESTMapper, d discoverer, logger logr.Logger) *Kinds {
	return &Kinds{
		cache: c, scheme: scheme, mapper: mapper, discovery: d, logger: logger, period: defaultPeriod,
		wake:  make(chan struct{}, 1),
		kinds: map[key]*kind{}, schedules: map[schema.GroupVersion]*schedule{},
	}
}

// Start starts and stops informers until the context ends. It sends no request before the first watch has been started. It returns when all
// its goroutines have ended.
func (k *Kinds) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, k.logger)
	defer k.goroutines.Wait()
	watchDefinitions := sync.OnceFunc(func() {
		if k.definitions != nil {
			k.goroutines.Go(func() { k.definitions.run(ctx) })
		}
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-timer.C:
		}
		k.round(ctx)
		if next, ok := k.nextCheck(); ok { // at least one watch has been started
			watchDefinitions()
			timer.Reset(time.Until(next))
		}
	}
}

// round does everything that is due: it reads discovery, and starts and stops informers.
func (k *Kinds) round(ctx context.Context) {
	for _, gv := range k.takeDue(time.Now()) {
		resources, err := discover(ctx, k.discovery, gv)
		if ctx.Err() != nil {
			return
		}
		k.noteDiscovery(gv, err)
		for _, kd := range k.watched(gv) {
			if err == nil {
				k.act(ctx, kd, k.observe(kd.gvk, resources))
			}
			k.checked(kd)
		}
	}
	for _, kd := range k.all() {
		switch k.phaseOf(kd) {
		case running: // another watch of the kind may have been started since
			k.started(kd, k.attachAll(ctx, kd))
		case draining:
			k.removeInformer(ctx, kd)
		}
	}
}

// takeDue returns the groups and versions that have to be checked now, and schedules their next checks.
func (k *Kinds) takeDue(now time.Time) []schema.GroupVersion {
	k.mu.Lock()
	defer k.mu.Unlock()
	var due []schema.GroupVersion
	for gv, s := range k.schedules {
		if !s.next.After(now) && k.isWatched(gv) {
			s.checked(now, k.period)
			due = append(due, gv)
		}
	}
	return due
}

// noteDiscovery logs the first of several errors of discovery. After an error, each kind keeps its last state: an API server that does not
// answer may still serve its kinds.
func (k *Kinds) noteDiscovery(gv schema.GroupVersion, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.schedules[gv]
	if err != nil && !s.failing {
		k.logger.Error(err, "Cannot find out whether kinds are served", "groupVersion", gv.String())
	}
	s.failing = err != nil
}

// nextCheck returns when the next check is due. If no watch has been started, ok is false.
func (k *Kinds) nextCheck() (next time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for gv, s := range k.schedules {
		if k.isWatched(gv) && (!ok || s.next.Before(next)) {
			next, ok = s.next, true
		}
	}
	return next, ok
}

// isWatched reports whether a kind of the group and version has a watch. The caller holds the lock.
func (k *Kinds) isWatched(gv schema.GroupVersion) bool {
	for _, kd := range k.kinds {
		if kd.gvk.GroupVersion() == gv && len(kd.watches) > 0 {
			return true
		}
	}
	return false
}

// watched returns the kinds of the group and version that have a watch.
func (k *Kinds) watched(gv schema.GroupVersion) []*kind {
	return slices.DeleteFunc(k.all(), func(kd *kind) bool { return kd.gvk.GroupVersion() != gv })
}

// all returns the kinds that have a watch.
func (k *Kinds) all() []*kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	var kinds []*kind
	for _, kd := range k.kinds {
		if len(kd.watches) > 0 {
			kinds = append(kinds, kd)
		}
	}
	return kinds
}

func (k *Kinds) phaseOf(kd *kind) phase {
	k.mu.Lock()
	defer k.mu.Unlock()
	return kd.phase
}

// observe returns what discovery shows of a kind, with the UID of its CustomResourceDefinition.
func (k *Kinds) observe(gvk schema.GroupVersionKind, resources []metav1.APIResource) observation {
	o := observe(gvk.Kind, resources)
	if o.served() && k.definitions != nil {
		o.definition, o.definitionKnown = k.definitions.uid(o.resource, gvk.Group)
	}
	return o
}
