// Package bench measures an operator built with opblocks beside the same operator written in other ways, in one run.
package bench

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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

// controlPlane starts a control plane without controllers: only the measured code writes.
var controlPlane = controlplanetest.Shared()

// fleet is a number of converged sites in one namespace, and a real informer cache that has them.
type fleet struct {
	client client.Client // reads from the cache
	ours   ctrlreconcile.Reconciler
	count  requests.Count
	names  []types.NamespacedName
}

func newFleet(b testing.TB, size int) *fleet {
	b.Helper()
	cp := controlPlane(b)
	must(b, cp.InstallCRDs(b.Context(), "api"))
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
	ours := reconcile.New(f.client, reconcile.Named("children",
		ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service))))
	// As in an operator, but without the queue: the benchmark calls Reconcile.
	must(b, ours.SetupWithBuilder(mgr, ctrl.NewControllerManagedBy(mgr).For(&api.Site{})))
	f.ours = ours
	for _, obj := range []client.Object{&api.Site{}, &appsv1.Deployment{}, &corev1.Service{}} {
		_, err := mgr.GetCache().GetInformer(b.Context(), obj, cache.BlockUntilSynced(false))
		must(b, err)
	}
	for i := range size {
		f.names = append(f.names, types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("site-%05d", i)})
	}
	direct, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	must(b, err)
	f.each(b, "create", func(name types.NamespacedName) {
		s := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		s.Spec = api.SiteSpec{Image: "nginx:1.27", Replicas: 2}
		must(b, direct.Create(b.Context(), s))
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	b.Cleanup(func() { stop(); must(b, <-done) })
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		b.Fatal("the cache did not sync")
	}
	f.converge(b, direct)
	return f
}

// converge creates the children, sets the status of the Deployments as their controller would, and waits for the cache.
func (f *fleet) converge(b testing.TB, direct client.Client) {
	pass := func(name types.NamespacedName) {
		_, err := f.ours.Reconcile(b.Context(), ctrl.Request{NamespacedName: name})
		must(b, err)
	}
	f.each(b, "create the children of", pass)
	f.each(b, "make ready", func(name types.NamespacedName) {
		var d appsv1.Deployment
		must(b, direct.Get(b.Context(), name, &d))
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		must(b, direct.Status().Update(b.Context(), &d))
	})
	var d appsv1.Deployment
	f.wait(b, &d, func() bool { return d.Status.ReadyReplicas == 2 })
	f.each(b, "see ready", pass)
	var s api.Site
	f.wait(b, &s, func() bool { return meta.IsStatusConditionTrue(s.Status.Conditions, "Ready") })
}

// each calls do for every site, eight at a time.
func (f *fleet) each(b testing.TB, what string, do func(types.NamespacedName)) {
	b.Helper()
	start := time.Now()
	workqueue.ParallelizeUntil(b.Context(), 8, len(f.names), func(i int) { do(f.names[i]) })
	fmt.Fprintf(os.Stderr, "bench: %s %d sites: %.0f s\n", what, len(f.names), time.Since(start).Seconds())
}

// wait reads every object into obj from the cache until is returns true for it.
func (f *fleet) wait(b testing.TB, obj client.Object, is func() bool) {
	b.Helper()
	for _, name := range f.names {
		must(b, wait.PollUntilContextTimeout(b.Context(), time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			if err := f.client.Get(ctx, name, obj, client.UnsafeDisableDeepCopy); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			return is(), nil
		}))
	}
}

// pass reconciles the i-th site once.
func (f *fleet) pass(b testing.TB, r ctrlreconcile.Reconciler, i int) {
	_, err := r.Reconcile(b.Context(), ctrl.Request{NamespacedName: f.names[i%len(f.names)]})
	must(b, err)
}

// BenchmarkSteadyState measures one pass with nothing to do. All variants reconcile the same objects. The last one
// alternates between them: on a busy machine its ratio is more reliable than the times.
func BenchmarkSteadyState(b *testing.B) {
	for _, size := range []int{100, 1_000, 10_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			f := newFleet(b, size)
			theirs := &handWritten{f.client}
			for i := range f.names {
				f.pass(b, f.ours, i)
				f.pass(b, theirs, i)
			}
			f.count.Sent()
			b.Run("opblocks", func(b *testing.B) { f.measure(b, f.ours) })
			b.Run("hand-written", func(b *testing.B) { f.measure(b, theirs) })
			b.Run("side-by-side", func(b *testing.B) { f.compare(b, f.ours, theirs) })
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

// compare alternates between batches of passes of each variant. Each reconciles objects that the other has not just brought
// into the processor's caches.
func (f *fleet) compare(b *testing.B, ours, theirs ctrlreconcile.Reconciler) {
	const batch = 50
	variants := [...]ctrlreconcile.Reconciler{ours, theirs}
	var times [len(variants)]time.Duration
	i := 0
	for b.Loop() {
		for v, r := range variants {
			start := time.Now()
			for n := range batch {
				f.pass(b, r, i*batch+n+v*len(f.names)/2)
			}
			times[v] += time.Since(start)
		}
		i++
	}
	f.expectQuiet(b)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(times[0].Nanoseconds())/float64(i*batch), "ns/opblocks")
	b.ReportMetric(float64(times[1].Nanoseconds())/float64(i*batch), "ns/hand-written")
	b.ReportMetric(float64(times[0])/float64(times[1]), "ratio")
}

// expectQuiet fails the benchmark if any request was sent.
func (f *fleet) expectQuiet(b testing.TB) {
	if sent := f.count.Sent(); len(sent) > 0 {
		b.Fatalf("a pass with nothing to do sent %v", sent)
	}
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
