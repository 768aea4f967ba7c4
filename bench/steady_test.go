// Package bench measures an operator built with opblocks beside the same operator written in other ways, in one run.
package bench

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// sendingSites is the number of sites that variants reconcile which send requests in every pass.
const sendingSites = 100

// BenchmarkSteadyState measures one pass with nothing to do, in turns. All variants reconcile the same objects, and read from
// the same cache. Those that list pods are measured at the end, when there are pods.
func BenchmarkSteadyState(b *testing.B) {
	for _, size := range sizes(b, 0) {
		b.Run(fmt.Sprintf("objects=%d", size), func(b *testing.B) {
			f := newSites(b, controlplane.New(b, controlplane.Options{}), size)
			f.converge(b)
			quiet := slices.DeleteFunc(slices.Clone(allVariants), sendsInEveryPass)
			f.settleSending(b, f.names[:min(size, sendingSites)], wholeSpec, serverSideApply)
			f.settle(b, quiet...)
			inTurns(b, allVariants, f.measure)
			f.createPods(b)
			f.settle(b, podVariants...)
			inTurns(b, podVariants, f.measure)
		})
	}
}

func (f *fleet) measure(b *testing.B, variant string) {
	names := f.names
	if sendsInEveryPass(variant) {
		names = names[:min(len(names), sendingSites)]
	}
	f.count.Sent()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f.pass(b, variant, names[i%len(names)])
		i++
	}
	sent := f.count.Sent()
	if !sendsInEveryPass(variant) && len(sent) > 0 {
		b.Fatalf("a pass with nothing to do sent %v", sent[:min(len(sent), 5)])
	}
	b.ReportMetric(float64(len(sent))/float64(i), "requests/op")
}
