package upgrade_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// BenchmarkPlan plans an operator with 10,000 objects on a real API server. In one case no object changes, and in the other one each is
// created. MB-after is the size of the heap after a plan, including the report.
func BenchmarkPlan(b *testing.B) {
	const objects, writers = 10_000, 8
	cp := controlPlane(b)
	namespace := controlplane.Namespace(b, cp)
	access := cp.Config()
	c, err := client.New(access, client.Options{})
	require.NoError(b, err)
	desired := func(owner *budget) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}, Data: map[string]string{"content": strings.Repeat("x", 1000)}}
	}
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			for i := writer; i < objects; i += writers {
				owner := newBudget(fmt.Sprintf("shop-%05d", i))
				owner.Namespace = namespace
				if err := c.Create(b.Context(), owner); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for name, child := range map[string]func() ownedresources.AnyChild[*budget]{
		"NoneChanges":   noSettings,
		"EachIsCreated": func() ownedresources.AnyChild[*budget] { return ownedresources.Build(desired) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				out, err := planWith(b.Context(), access, namespace, "text", children(child()))
				if err != nil {
					require.ErrorIs(b, err, upgrade.ErrChanges)
				}
				require.Contains(b, out, "of 10000 change")
			}
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			b.ReportMetric(float64(stats.HeapAlloc)/1e6, "MB-after")
			b.ReportMetric(objects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}
