// Package bench measures opblocks beside other ways to write the same operator, in one run.
package bench

import (
	"context"
	"fmt"
	"io"
	"log"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

func init() {
	ctrl.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
}

// No controllers run: nothing but the measured code writes.
var controlPlane = controlplanetest.Shared()

func withOpblocks(c client.Client) ctrlreconcile.Reconciler {
	return reconcile.New(c, reconcile.Named("children",
		ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service))))
}

// fleet is a number of converged sites in one namespace, with a real informer cache over them.
type fleet struct {
	client client.Client
	count  requests.Count
	names  []types.NamespacedName
}

func newFleet(b *testing.B, size int) *fleet {
	b.Helper()
	cp := controlPlane(b)
	if err := cp.InstallCRDs(b.Context(), "api"); err != nil {
		b.Fatal(err)
	}
	namespace := controlplanetest.Namespace(b, cp)
	scheme := runtime.NewScheme()
	must(b, clientgoscheme.AddToScheme(scheme))
	must(b, api.AddToScheme(scheme))
	f := &fleet{}
	mgr, err := ctrl.NewManager(f.count.Wrap(cp.Config()), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(b, err)
	f.client = mgr.GetClient()
	direct, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	must(b, err)
	reconciler := withOpblocks(direct)
	for i := range size {
		f.names = append(f.names, types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("site-%05d", i)})
	}
	workqueue.ParallelizeUntil(b.Context(), 16, size, func(i int) { f.converge(b, direct, reconciler, f.names[i]) })
	for _, obj := range []client.Object{&api.Site{}, &appsv1.Deployment{}, &corev1.Service{}} {
		_, err := mgr.GetCache().GetInformer(b.Context(), obj, cache.BlockUntilSynced(false))
		must(b, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	b.Cleanup(func() { stop(); must(b, <-done) })
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		b.Fatal("the cache did not sync")
	}
	return f
}

// converge runs passes without a cache, and plays the Deployment's controller.
func (f *fleet) converge(b *testing.B, c client.Client, r ctrlreconcile.Reconciler, name types.NamespacedName) {
	s := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	s.Spec = api.SiteSpec{Image: "nginx:1.27", Replicas: 2}
	must(b, c.Create(b.Context(), s))
	run := func() {
		_, err := r.Reconcile(b.Context(), ctrl.Request{NamespacedName: name})
		must(b, err)
	}
	run()
	var d appsv1.Deployment
	must(b, c.Get(b.Context(), name, &d))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	must(b, c.Status().Update(b.Context(), &d))
	run()
}

func (f *fleet) pass(b *testing.B, r ctrlreconcile.Reconciler, i int) {
	_, err := r.Reconcile(b.Context(), ctrl.Request{NamespacedName: f.names[i%len(f.names)]})
	must(b, err)
}

// BenchmarkSteadyState is one pass with nothing to do. All variants pass over the same objects.
// The last one lets them take turns: on a busy machine its ratio says more than the times.
func BenchmarkSteadyState(b *testing.B) {
	for _, size := range []int{100, 1_000, 10_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			f := newFleet(b, size)
			ours, theirs := withOpblocks(f.client), &handWritten{f.client}
			for i := range f.names { // the first pass after a start looks for what to prune
				f.pass(b, ours, i)
				f.pass(b, theirs, i)
			}
			f.count.Sent()
			b.Run("opblocks", func(b *testing.B) { f.measure(b, ours) })
			b.Run("hand-written", func(b *testing.B) { f.measure(b, theirs) })
			b.Run("side-by-side", func(b *testing.B) { f.compare(b, ours, theirs) })
		})
	}
}

func (f *fleet) measure(b *testing.B, r ctrlreconcile.Reconciler) {
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f.pass(b, r, i)
		i++
	}
	f.expectQuiet(b)
}

// compare gives each its turn of some passes, again and again.
func (f *fleet) compare(b *testing.B, ours, theirs ctrlreconcile.Reconciler) {
	const turn = 50
	variants := [...]ctrlreconcile.Reconciler{ours, theirs}
	var times [len(variants)]time.Duration
	i := 0
	for b.Loop() {
		for v, r := range variants {
			start := time.Now()
			for n := range turn {
				f.pass(b, r, i*turn+n)
			}
			times[v] += time.Since(start)
		}
		i++
	}
	f.expectQuiet(b)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(times[0].Nanoseconds())/float64(i*turn), "ns/opblocks")
	b.ReportMetric(float64(times[1].Nanoseconds())/float64(i*turn), "ns/hand-written")
	b.ReportMetric(float64(times[0])/float64(times[1]), "ratio")
}

func (f *fleet) expectQuiet(b *testing.B) {
	if sent := f.count.Sent(); len(sent) > 0 {
		b.Fatalf("a pass with nothing to do sent %v", sent)
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
