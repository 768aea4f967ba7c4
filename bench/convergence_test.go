package bench

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// operator is an operator with the cache options that it usually has.
type operator struct {
	cache cache.Options
	setup func(mgr ctrl.Manager) error
}

// operators are ways to write the same operator.
var operators = map[string]operator{
	"opblocks": {
		cache: cache.Options{DefaultTransform: reconcile.TransformCompact()},
		setup: func(mgr ctrl.Manager) error {
			return reconcile.For[*api.Site](mgr, reconcile.Named("children",
				ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service)))).Complete()
		},
	},
	"hand-written": {setup: func(mgr ctrl.Manager) error {
		return ownsChildren(mgr).Complete(&handWritten{mgr.GetClient()})
	}},
	"create-or-update": {setup: func(mgr ctrl.Manager) error {
		return ownsChildren(mgr).Complete(&createOrUpdate{mgr.GetClient()})
	}},
}

func ownsChildren(mgr ctrl.Manager) *ctrl.Builder {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Site{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{})
}

// createOrUpdate sets each wanted field on the live object, by controllerutil.CreateOrUpdate.
type createOrUpdate struct{ client.Client }

func (r *createOrUpdate) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
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

// BenchmarkConvergence measures the time from an operator's start until it has created the children of all new objects,
// with one worker. It also measures the live heap after the operator was restarted and has reconciled each object. No
// other controllers run. Run it with -benchtime=1x.
func BenchmarkConvergence(b *testing.B) {
	for _, size := range []int{1_000, 10_000} {
		for _, name := range slices.Sorted(maps.Keys(operators)) {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				for b.Loop() {
					newConvergence(b, size, name).measure(b)
				}
			})
		}
	}
}

// convergence is an operator with objects that it has not reconciled yet.
type convergence struct {
	operator  operator
	size      int
	config    *rest.Config
	count     requests.Count
	namespace string
	scheme    *k8sruntime.Scheme
}

func newConvergence(b *testing.B, size int, name string) *convergence {
	b.Helper()
	b.StopTimer()
	cp := controlplanetest.Start(b) // not shared: the objects of other benchmarks would slow it down
	must(b, cp.InstallCRDs(b.Context(), "api"))
	c := &convergence{operator: operators[name], size: size, namespace: controlplanetest.Namespace(b, cp), scheme: k8sruntime.NewScheme()}
	must(b, clientgoscheme.AddToScheme(c.scheme))
	must(b, api.AddToScheme(c.scheme))
	c.config = c.count.Wrap(cp.Config())
	c.config.QPS = -1 // as it is by default since controller-runtime 0.21
	direct, err := client.New(cp.Config(), client.Options{Scheme: c.scheme})
	must(b, err)
	workqueue.ParallelizeUntil(b.Context(), 8, size, func(i int) {
		s := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: fmt.Sprintf("site-%05d", i)}}
		s.Spec = api.SiteSpec{Image: "nginx:1.27", Replicas: 2}
		must(b, direct.Create(b.Context(), s))
	})
	return c
}

func (c *convergence) measure(b *testing.B) {
	b.Helper()
	mgr := c.manager(b)
	ready := &readyCount{left: c.size, done: make(chan struct{}), seen: map[string]bool{}}
	informer, err := mgr.GetCache().GetInformer(b.Context(), &api.Site{}, cache.BlockUntilSynced(false))
	must(b, err)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: ready.observe, UpdateFunc: func(_, obj any) { ready.observe(obj) },
	})
	must(b, err)
	start := time.Now()
	b.StartTimer()
	stop := c.start(b, mgr)
	select {
	case <-ready.done:
	case <-time.After(10 * time.Minute):
		b.Fatal("the operator has not converged after 10 minutes")
	}
	b.StopTimer()
	b.ReportMetric(time.Since(start).Seconds(), "s")
	sent := map[string]int{}
	for _, request := range c.count.Sent() {
		verb, resource, _ := strings.Cut(request, " ")
		if strings.HasSuffix(resource, "/status") {
			verb = "status"
		}
		sent[verb]++
	}
	for verb, n := range sent {
		b.ReportMetric(float64(n)/float64(c.size), verb+"/object")
	}
	stop()
	b.ReportMetric(c.heap(b)/float64(c.size)/1024, "KiB/object")
	b.StartTimer()
}

// heap returns the live heap of the operator in bytes, after it was restarted and has reconciled each object.
func (c *convergence) heap(b *testing.B) float64 {
	b.Helper()
	passes, before := c.passes(b), liveHeap()
	mgr := c.manager(b)
	stop := c.start(b, mgr)
	defer stop()
	must(b, wait.PollUntilContextTimeout(b.Context(), 100*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		return c.passes(b) >= passes+float64(c.size), nil
	}))
	sent := c.count.Sent()
	b.ReportMetric(float64(len(sent)), "restart-writes")
	return float64(liveHeap() - before)
}

func (c *convergence) manager(b *testing.B) ctrl.Manager {
	b.Helper()
	options := c.operator.cache
	options.DefaultNamespaces = map[string]cache.Config{c.namespace: {}}
	mgr, err := ctrl.NewManager(c.config, ctrl.Options{
		Scheme: c.scheme, Cache: options, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: skipNames,
	})
	must(b, err)
	must(b, c.operator.setup(mgr))
	return mgr
}

func (c *convergence) start(b *testing.B, mgr ctrl.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	return func() {
		cancel()
		must(b, <-stopped)
	}
}

// passes returns how many passes the controllers of this process have run.
func (c *convergence) passes(b *testing.B) float64 {
	families, err := ctrlmetrics.Registry.Gather()
	must(b, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}

var skipNames = config.Controller{SkipNameValidation: new(true)}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // frees what Go finalizers kept alive
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// readyCount closes done once every object has a Ready condition for its generation.
type readyCount struct {
	mu   sync.Mutex
	seen map[string]bool
	left int
	done chan struct{}
}

func (r *readyCount) observe(obj any) {
	s, ok := obj.(*api.Site)
	if !ok {
		return
	}
	c := meta.FindStatusCondition(s.Status.Conditions, "Ready")
	if c == nil || c.ObservedGeneration != s.Generation {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[s.Name] {
		return
	}
	r.seen[s.Name] = true
	if r.left--; r.left == 0 {
		close(r.done)
	}
}
