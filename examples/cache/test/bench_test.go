package test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// foreign is how many ConfigMaps, and how many Secrets, another namespace has in BenchmarkForeignObjects, of a megabyte each.
const foreign = 500

// BenchmarkForeignObjects measures the heap of the operator beside large ConfigMaps and Secrets of another namespace: at rest after a
// collection, and its peak from the start on. Run it once: -benchtime 1x.
func BenchmarkForeignObjects(b *testing.B) {
	for _, objects := range []string{"none", "plain", "forged"} { // forged ones have the labels of a Cache's children
		b.Run("objects="+objects, func(b *testing.B) {
			cp := controlplane.New(b, controlplane.WithCRDs("../config/crd/bases"))
			u := operatortest.NewUser(b, cp, scheme)
			own := &storev1alpha1.Cache{ObjectMeta: u.Meta("own")}
			require.NoError(b, u.Create(b.Context(), own))
			if objects != "none" {
				createForeign(b, cp, objects == "forged")
			}
			for _, with := range []string{"whole", "hashed"} {
				b.Run("cache="+with, func(b *testing.B) {
					for b.Loop() {
						measureHeap(b, cp, own, with == "hashed")
					}
				})
			}
		})
	}
}

// measureHeap starts the operator, waits for a pass over a Cache, and reports the heap. The cache of an operator that is not hashed holds all
// objects of the cluster, whole.
func measureHeap(b *testing.B, cp *controlplane.ControlPlane, own *storev1alpha1.Cache, hashed bool) {
	b.Helper()
	runtime.GC()
	peak := watchHeap(b)
	options := ctrl.Options{Scheme: scheme, Cache: controller.Cache(), Client: controller.Client()}
	var more []reconcile.ManagerOption
	if hashed {
		more = append(more, reconcile.HashLargeValues(controller.LargeValues))
	} else {
		options.Cache = reconcile.CacheOptions()
	}
	var passed atomic.Bool
	o := operatortest.Start(b, cp.Config(), options, &storev1alpha1.Cache{}, func(mgr ctrl.Manager) error {
		steps := (&controller.Operator{}).Steps()
		steps = append(steps, reconcile.Named("passed", reconcile.Func(func(context.Context, client.Client, *storev1alpha1.Cache) error {
			passed.Store(true)
			return nil
		})))
		return reconcile.For(mgr, steps...).Complete()
	}, more...)
	require.Eventually(b, passed.Load, operatortest.Patience, time.Millisecond)
	most := peak()
	runtime.GC()
	runtime.GC() // the first one runs finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	runtime.KeepAlive(o)
	const mb = 1 << 20
	b.ReportMetric(float64(stats.HeapAlloc)/mb, "MB-at-rest")
	b.ReportMetric(float64(most)/mb, "MB-peak")
	b.ReportMetric(0, "ns/op")
	o.Stop()
}

// watchHeap looks at the heap until the function that it returns is called, which returns the most that was seen.
func watchHeap(b *testing.B) (stop func() uint64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var done sync.WaitGroup
	var most uint64
	done.Go(func() {
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for ctx.Err() == nil {
			metrics.Read(heap)
			most = max(most, heap[0].Value.Uint64())
			time.Sleep(time.Millisecond)
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
		labels = ownedresources.Labels(&storev1alpha1.Cache{ObjectMeta: metav1.ObjectMeta{Name: "own"}})
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
