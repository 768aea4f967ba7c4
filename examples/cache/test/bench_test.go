package test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const (
	own     = 500 // Caches, each with their children
	foreign = 500 // ConfigMaps, and as many Secrets, of a megabyte each
)

// BenchmarkForeignObjects measures the heap that the operator of 500 Caches takes beside 500 large ConfigMaps and 500 large Secrets of another
// namespace: its peak, after the start, and at rest, each of the latter after a collection. A watch keeps a buffer of the size of its largest object until
// it ends; client-go begins another one after 5 to 10 minutes, and here after seconds. Run it once: -benchtime 1x.
func BenchmarkForeignObjects(b *testing.B) {
	for _, objects := range []string{"none", "plain", "forged"} { // forged ones have the labels of a Cache's children
		b.Run("objects="+objects, func(b *testing.B) {
			cp := controlplane.New(b, controlplane.Options{CRDs: []string{"../config/crd/bases"}})
			u := operatortest.NewUser(b, cp, scheme)
			for i := range own {
				require.NoError(b, u.Create(b.Context(), &storev1alpha1.Cache{ObjectMeta: u.Meta(fmt.Sprint("own-", i))}))
			}
			if objects != "none" {
				createForeign(b, cp, objects == "forged")
			}
			measureHeap(b, cp, true, func(started, rest, peak float64) {}) // the operator has to create the children once
			for _, with := range []string{"whole", "hashed"} {
				b.Run("cache="+with, func(b *testing.B) {
					for b.Loop() {
						measureHeap(b, cp, with == "hashed", func(started, rest, peak float64) {
							b.ReportMetric(started, "MB-started")
							b.ReportMetric(rest, "MB-at-rest")
							b.ReportMetric(peak, "MB-peak")
							b.ReportMetric(0, "ns/op")
						})
					}
				})
			}
		})
	}
}

// measureHeap starts the operator, waits for a pass over each Cache, and reports the heap. The cache of an operator that is not hashed holds all
// objects of the cluster, whole.
func measureHeap(b *testing.B, cp *controlplane.ControlPlane, hashed bool, report func(started, rest, peak float64)) {
	b.Helper()
	before := heapAtRest()
	peak := watchHeap(b)
	options := ctrl.Options{Scheme: scheme, Cache: controller.Cache(), Client: controller.Client()}
	var more []reconcile.ManagerOption
	if hashed {
		more = append(more, reconcile.HashLargeValues(controller.LargeValues))
	} else {
		options.Cache = reconcile.CacheOptions()
	}
	watches := &shortWatches{}
	options.Cache.NewInformer = watches.newInformer
	var passed sync.Map
	o := operatortest.Start(b, cp.Config(), options, &storev1alpha1.Cache{}, func(mgr ctrl.Manager) error {
		steps := (&controller.Operator{}).Steps()
		steps = append(steps, reconcile.Named("passed", reconcile.Func(func(_ context.Context, _ client.Client, c *storev1alpha1.Cache) error {
			passed.Store(c.Name, true)
			return nil
		})))
		return reconcile.For(mgr, steps...).Complete()
	}, more...)
	require.Eventually(b, func() bool {
		n := 0
		passed.Range(func(any, any) bool { n++; return true })
		return n == own
	}, operatortest.Patience, time.Millisecond)
	most := peak()
	started := heapAtRest()
	seen := watches.begun()
	require.Eventually(b, func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(n int) bool { return watches.begun()[n] == seen[n] })
	},
		operatortest.Patience, 100*time.Millisecond, "not all watches were begun again")
	rest := heapAtRest()
	o.Stop()
	report(float64(started-before)/(1<<20), float64(rest-before)/(1<<20), float64(most-before)/(1<<20))
}

// shortWatches makes informers whose watches end after a while, and counts them.
type shortWatches struct {
	mu     sync.Mutex
	counts map[int]int // by informer
}

// begun returns how many watches each informer has begun.
func (s *shortWatches) begun() map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

func (s *shortWatches) newInformer(lw toolscache.ListerWatcher, obj apiruntime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[int]int{}
	}
	informer := len(s.counts)
	s.counts[informer] = 0
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: inner.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.TimeoutSeconds = new(int64(20)) // longer than the first one takes, which sends all objects
			s.mu.Lock()
			s.counts[informer]++
			s.mu.Unlock()
			return inner.WatchWithContext(ctx, options)
		},
	}, obj, resync, indexers)
}

// heapAtRest returns the bytes on the heap after a collection.
func heapAtRest() uint64 {
	runtime.GC()
	runtime.GC() // the first one runs finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// watchHeap looks at the heap until the function that it returns is called, which returns the most that was seen.
func watchHeap(b *testing.B) (stop func() uint64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var done sync.WaitGroup
	var most uint64
	done.Go(func() {
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for ctx.Err() == nil {
			metrics.Read(heap)
			most = max(most, heap[0].Value.Uint64())
			<-look.C
		}
	})
	return func() uint64 {
		cancel()
		done.Wait()
		return most
	}
}

// createForeign creates large objects in a namespace of their own. Their values are random, so that nothing is shared.
func createForeign(b *testing.B, cp *controlplane.ControlPlane, forged bool) {
	b.Helper()
	u := operatortest.NewUser(b, cp, scheme)
	var labels map[string]string
	if forged {
		labels = ownedresources.Labels(&storev1alpha1.Cache{ObjectMeta: metav1.ObjectMeta{Name: "own-1"}})
	}
	workqueue.ParallelizeUntil(b.Context(), 4, foreign, func(i int) {
		meta := u.Meta(fmt.Sprint("foreign-", i))
		meta.Labels = labels
		value := make([]byte, 1000*1000)
		_, _ = rand.Read(value)
		for _, obj := range []client.Object{
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": value}},
			&corev1.ConfigMap{ObjectMeta: *meta.DeepCopy(), BinaryData: map[string][]byte{"value": value}},
		} {
			if err := u.Create(b.Context(), obj); err != nil {
				b.Error(err)
			}
		}
	})
}
