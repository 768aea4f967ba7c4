package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// BenchmarkConvergence measures the time from an operator's start until it has created the children of all new objects,
// with one worker. It also measures the memory of a process of the operator that was started afterwards and has reconciled
// each object. No other controllers run. With few objects run it with -benchtime=1x.
func BenchmarkConvergence(b *testing.B) {
	for _, size := range sizes(b, 1_000) {
		variants := convergenceVariants
		if size > 1_000 {
			variants = mainVariants
		}
		b.Run(fmt.Sprintf("objects=%d", size), func(b *testing.B) {
			inTurns(b, variants, func(b *testing.B, variant string) {
				for b.Loop() {
					newConvergence(b, size, variant).measure(b)
				}
			})
		})
	}
}

// convergence is an operator with objects that it has not reconciled yet.
type convergence struct {
	variant   string
	size      int
	plane     *controlplane.ControlPlane
	namespace string
	delay     time.Duration // what each request of the operator takes in addition
}

func newConvergence(b *testing.B, size int, variant string) *convergence {
	b.Helper()
	b.StopTimer()
	// Not shared: the objects of other benchmarks would slow it down.
	cp := controlplane.New(b, controlplane.Options{APIServerArgs: []string{fmt.Sprintf("--profiling=%t", profileVariable != "")}})
	must(b, cp.InstallCRDs(b.Context(), "api"))
	c := &convergence{variant: variant, size: size, plane: cp, namespace: controlplane.Namespace(b, cp)}
	direct, err := client.New(cp.Config(), client.Options{Scheme: newScheme()})
	must(b, err)
	workqueue.ParallelizeUntil(b.Context(), 8, size, func(i int) {
		s := newSite(c.namespace, siteName(i))
		if hasTenChildren(variant) {
			s.Spec.Replicas = 10
		}
		must(b, direct.Create(b.Context(), s))
	})
	return c
}

func (c *convergence) measure(b *testing.B) {
	b.Helper()
	var count requests.Count
	var times latency
	mgr, err := newManager(delayed(times.wrap(count.Wrap(c.plane.Config())), c.delay), c.variant, c.namespace)
	must(b, err)
	ready := &readyCount{left: c.size, done: make(chan struct{}), seen: map[string]bool{}}
	informer, err := mgr.GetCache().GetInformer(b.Context(), &api.Site{}, cache.BlockUntilSynced(false))
	must(b, err)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: ready.observe, UpdateFunc: func(_, obj any) { ready.observe(obj) },
	})
	must(b, err)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	start := time.Now()
	b.StartTimer()
	go func() { stopped <- mgr.Start(ctx) }()
	if profileVariable != "" {
		go c.profile(b)
	}
	select {
	case <-ready.done:
	case <-time.After(10 * time.Minute):
		b.Fatal("the operator has not converged after 10 minutes")
	}
	b.StopTimer()
	took := time.Since(start)
	waitForEvents(b, &count)
	stop()
	must(b, <-stopped)
	b.ReportMetric(took.Seconds(), "s")
	c.report(b, &count)
	times.report(b)
	memory, err := c.restart(b.Context())
	must(b, err)
	memory.report(b, c.size)
	progress("%s created the children of %d sites in %.1f s, and restarted in %.1f s", c.variant, c.size, took.Seconds(), memory.Seconds)
	b.StartTimer()
}

// profile writes a CPU profile of 20 seconds of kube-apiserver.
func (c *convergence) profile(b *testing.B) {
	http, err := rest.HTTPClientFor(c.plane.Config())
	if err != nil {
		b.Error(err)
		return
	}
	response, err := http.Get(c.plane.Config().Host + "/debug/pprof/profile?seconds=20")
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	file, err := os.Create(profileVariable)
	if err != nil {
		b.Error(err)
		return
	}
	_, err = io.Copy(file, response.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		b.Error(err)
	}
}

// report reports the requests by the object.
func (c *convergence) report(b *testing.B, count *requests.Count) {
	b.ReportMetric(float64(count.Events())/float64(c.size), "events/object")
	sent := map[string]int{"POST": 0, "PUT+PATCH": 0, "status": 0}
	for _, request := range count.Sent() {
		verb, resource, _ := strings.Cut(request, " ")
		switch {
		case strings.HasSuffix(resource, "/status"):
			verb = "status"
		case verb == "PUT" || verb == "PATCH":
			verb = "PUT+PATCH"
		}
		sent[verb]++
	}
	for verb, n := range sent {
		b.ReportMetric(float64(n)/float64(c.size), verb+"/object")
	}
}

// waitForEvents waits until the recorder, which sends events in the background, has sent all.
func waitForEvents(b *testing.B, count *requests.Count) {
	before := -1
	must(b, wait.PollUntilContextTimeout(b.Context(), 500*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		now := count.Events()
		same := now == before
		before = now
		return same, nil
	}))
}

func newManager(config *rest.Config, variant, namespace string) (ctrl.Manager, error) {
	config.QPS = -1 // as it is by default since controller-runtime 0.21
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(), Cache: cacheOptions(variant, namespace), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: skipNames,
	})
	if err != nil {
		return nil, err
	}
	return mgr, addController(mgr, variant)
}

var skipNames = config.Controller{SkipNameValidation: new(true)}

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
