package bench

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// operators are ways to write the same one, with the cache that each is usually given.
var operators = map[string]struct {
	cache cache.Options
	setup func(mgr ctrl.Manager) error
}{
	"opblocks": {
		cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		setup: func(mgr ctrl.Manager) error {
			return reconcile.For[*api.Site](mgr, reconcile.Named("children",
				ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service)))).Complete()
		},
	},
	"hand-written": {setup: func(mgr ctrl.Manager) error {
		return owning(mgr).Complete(&handWritten{mgr.GetClient()})
	}},
	"create-or-update": {setup: func(mgr ctrl.Manager) error {
		return owning(mgr).Complete(&careful{mgr.GetClient()})
	}},
}

func owning(mgr ctrl.Manager) *ctrl.Builder {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Site{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{})
}

// careful merges each field that it wants into what is there, by controllerutil.CreateOrUpdate.
type careful struct{ client.Client }

func (r *careful) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s api.Site
	if err := r.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		want := deployment(&s)
		d.Labels, d.Spec.Replicas = want.Labels, want.Spec.Replicas
		if d.Spec.Selector == nil {
			d.Spec.Selector, d.Spec.Template = want.Spec.Selector, want.Spec.Template
		}
		d.Spec.Template.Labels = want.Spec.Template.Labels
		is, wanted := &d.Spec.Template.Spec.Containers[0], want.Spec.Template.Spec.Containers[0]
		is.Name, is.Image, is.Env = wanted.Name, wanted.Image, wanted.Env
		if len(is.Ports) != 1 || is.Ports[0].ContainerPort != wanted.Ports[0].ContainerPort {
			is.Ports = wanted.Ports
		}
		return ctrl.SetControllerReference(&s, d, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, svc, func() error {
		want := service(&s)
		svc.Labels, svc.Spec.Selector = want.Labels, want.Spec.Selector
		if len(svc.Spec.Ports) != 1 || svc.Spec.Ports[0].Port != want.Spec.Ports[0].Port {
			svc.Spec.Ports = want.Spec.Ports
		}
		return ctrl.SetControllerReference(&s, svc, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	status := metav1.ConditionFalse
	if d.Status.ReadyReplicas == s.Spec.Replicas {
		status = metav1.ConditionTrue
	}
	if meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: "Succeeded", ObservedGeneration: s.Generation,
	}) {
		return ctrl.Result{}, r.Status().Update(ctx, &s)
	}
	return ctrl.Result{}, nil
}

// BenchmarkConvergence is the time from an operator's start until it has made everything for new
// objects, with one worker; and the memory that lives then. No other controllers run. Run it with
// -benchtime=1x.
func BenchmarkConvergence(b *testing.B) {
	for _, size := range []int{1_000, 10_000} {
		for name, operator := range operators {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				for b.Loop() {
					converge(b, size, operator.cache, operator.setup)
				}
			})
		}
	}
}

func converge(b *testing.B, size int, options cache.Options, setup func(ctrl.Manager) error) {
	b.Helper()
	b.StopTimer()
	cp := controlPlane(b)
	must(b, cp.InstallCRDs(b.Context(), "api"))
	namespace := controlplanetest.Namespace(b, cp)
	scheme := k8sruntime.NewScheme()
	must(b, clientgoscheme.AddToScheme(scheme))
	must(b, api.AddToScheme(scheme))
	direct, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	must(b, err)
	workqueue.ParallelizeUntil(b.Context(), 8, size, func(i int) {
		s := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("site-%05d", i)}}
		s.Spec = api.SiteSpec{Image: "nginx:1.27", Replicas: 2}
		must(b, direct.Create(b.Context(), s))
	})
	before := liveHeap()

	var count requests.Count
	config := count.Wrap(cp.Config())
	config.QPS = -1 // as it is by default since controller-runtime 0.21
	options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: options, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: skipNames,
	})
	must(b, err)
	must(b, setup(mgr))
	left := &awaited{left: size, done: make(chan struct{}), seen: map[string]bool{}}
	informer, err := mgr.GetCache().GetInformer(b.Context(), &api.Site{}, cache.BlockUntilSynced(false))
	must(b, err)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: left.observe, UpdateFunc: func(_, obj any) { left.observe(obj) },
	})
	must(b, err)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	start := time.Now()
	b.StartTimer()
	go func() { stopped <- mgr.Start(ctx) }()
	select {
	case <-left.done:
	case err := <-stopped:
		b.Fatal(err)
	case <-time.After(10 * time.Minute):
		b.Fatal("it takes too long")
	}
	b.StopTimer()
	b.ReportMetric(time.Since(start).Seconds(), "s")
	sent := map[string]int{}
	for _, request := range count.Sent() {
		verb, resource, _ := strings.Cut(request, " ")
		if strings.HasSuffix(resource, "/status") {
			verb = "status"
		}
		sent[verb]++
	}
	for verb, n := range sent {
		b.ReportMetric(float64(n)/float64(size), verb+"/object")
	}
	b.ReportMetric(float64(liveHeap()-before)/float64(size)/1024, "KiB/object")
	stop()
	must(b, <-stopped)
	b.StartTimer()
}

var skipNames = config.Controller{SkipNameValidation: new(true)}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// awaited counts the objects whose status tells of their generation.
type awaited struct {
	mu   sync.Mutex
	seen map[string]bool
	left int
	done chan struct{}
}

func (a *awaited) observe(obj any) {
	s, ok := obj.(*api.Site)
	if !ok {
		return
	}
	c := meta.FindStatusCondition(s.Status.Conditions, "Ready")
	if c == nil || c.ObservedGeneration != s.Generation {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[s.Name] {
		return
	}
	a.seen[s.Name] = true
	if a.left--; a.left == 0 {
		close(a.done)
	}
}
