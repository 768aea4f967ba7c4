package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// scaleCommand is the first argument of this test program when it is the server of generated objects.
const scaleCommand = "serve-generated-objects"

// runScaleServer is the process of the server of generated objects, and returns its exit code.
func runScaleServer() int {
	size, err := strconv.Atoi(os.Args[3])
	namespaces, err2 := strconv.Atoi(os.Args[4])
	if err := errors.Join(err, err2, serveScale(os.Args[2], size, namespaces, os.Args[5])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// listen serves on a free port, which it writes to out. It returns when standard input is closed.
func listen(handler http.Handler, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, handler) }()
	fmt.Fprintln(out, listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// scaleOperators are ways to run the operator with many objects.
var scaleOperators = map[string]struct {
	cache        cache.Options
	handWritten  bool
	ownNamespace bool // each object has a namespace of its own
}{
	"opblocks":               {cache: cache.Options{DefaultTransform: reconcile.TransformCompact()}},
	"opblocks-default-cache": {},
	"opblocks-namespaces":    {cache: cache.Options{DefaultTransform: reconcile.TransformCompact()}, ownNamespace: true},
	"hand-written":           {handWritten: true},
}

// BenchmarkScale measures an operator that is restarted with many converged objects: the time until its cache has them, the time
// until it has reconciled each of them, its memory, and what it does when all of its children change at once and when its
// watches break and have to begin again with a list. The objects are generated, see scaleServer. Run it with -benchtime=1x.
func BenchmarkScale(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("objects=%d", size), func(b *testing.B) {
			inTurns(b, slices.Sorted(maps.Keys(scaleOperators)), func(b *testing.B, variant string) {
				for b.Loop() {
					newScale(b, size, variant).measure(b)
				}
			})
		})
	}
}

// scale is an operator with generated objects.
type scale struct {
	name        string
	size        int
	server      string
	mgr         ctrl.Manager
	passes      atomic.Int64
	last        atomic.Int64 // when the last pass ended, in nanoseconds since 1970
	count       requests.Count
	reconciler  ctrlreconcile.Reconciler
	namespaceOf func(i int) string
}

func newScale(b *testing.B, size int, name string) *scale {
	b.Helper()
	cp := controlPlane(b)
	template := newFleet(b, 1)
	namespaces := 1
	if scaleOperators[name].ownNamespace {
		namespaces = size
	}
	program, err := os.Executable()
	must(b, err)
	server := exec.Command(program, scaleCommand, cp.Kubeconfig(), strconv.Itoa(size), strconv.Itoa(namespaces), template.names[0].Namespace)
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	must(b, err)
	stdout, err := server.StdoutPipe()
	must(b, err)
	must(b, server.Start())
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = server.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	must(b, err)
	s := &scale{name: name, size: size, server: "http://" + strings.TrimSpace(address)}
	s.namespaceOf = (&scaleServer{namespaces: namespaces}).ns
	return s
}

// Reconcile counts the passes.
func (s *scale) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := s.reconciler.Reconcile(ctx, request)
	s.last.Store(time.Now().UnixNano())
	s.passes.Add(1)
	return result, err
}

func (s *scale) setup(b *testing.B) {
	scheme := k8sruntime.NewScheme()
	must(b, clientgoscheme.AddToScheme(scheme))
	must(b, api.AddToScheme(scheme))
	variant := scaleOperators[s.name]
	config := s.count.Wrap(&rest.Config{Host: s.server, QPS: -1})
	var err error
	s.mgr, err = ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: variant.cache, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: skipNames,
	})
	must(b, err)
	builder := ctrl.NewControllerManagedBy(s.mgr).For(&api.Site{}).WithOptions(controller.Options{MaxConcurrentReconciles: 2})
	if variant.handWritten {
		s.reconciler = &handWritten{s.mgr.GetClient()}
		builder = ownsChildren(s.mgr).WithOptions(controller.Options{MaxConcurrentReconciles: 2})
	} else {
		ours := reconcile.New(s.mgr.GetClient(), reconcile.Named("children",
			ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service))))
		must(b, ours.SetupWithBuilder(s.mgr, builder))
		s.reconciler = ours
	}
	must(b, builder.Complete(s))
	for _, obj := range []client.Object{&api.Site{}, &appsv1.Deployment{}, &corev1.Service{}} { // so that the cache waits for them
		_, err := s.mgr.GetCache().GetInformer(b.Context(), obj, cache.BlockUntilSynced(false))
		must(b, err)
	}
}

func (s *scale) measure(b *testing.B) {
	b.Helper()
	before := liveHeap()
	resetPeak(b)
	s.setup(b)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	began, cpu := time.Now(), cpuTime(b)
	go func() { stopped <- s.mgr.Start(ctx) }()
	if !s.mgr.GetCache().WaitForCacheSync(ctx) {
		b.Fatal("the cache did not sync")
	}
	b.ReportMetric(time.Since(began).Seconds(), "sync-s")
	done := s.settle(b, int64(s.size))
	b.ReportMetric(done.Sub(began).Seconds(), "start-s")
	b.ReportMetric((cpuTime(b) - cpu).Seconds(), "start-cpu-s")
	b.ReportMetric(float64(s.passes.Load())/float64(s.size), "start-passes/object")
	b.ReportMetric(float64(peak(b))/(1<<20), "start-peak-MiB")
	b.ReportMetric(float64(liveHeap()-before)/float64(s.size)/1024, "KiB/object")
	s.quiet(b)
	s.profile(b)

	s.trigger(b, "storm", "/storm/deployments")
	b.ReportMetric(float64(liveHeap()-before)/float64(s.size)/1024, "KiB/object-later")
	s.trigger(b, "relist", "/break")
	b.ReportMetric(float64(peak(b))/(1<<20), "peak-MiB")
	s.quiet(b)

	began = time.Now()
	for i := range s.size {
		_, err := s.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: s.namespaceOf(i), Name: scaleName(i)}})
		must(b, err)
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(s.size), "pass-ns")
	s.scrape(b)
	cancel()
	must(b, <-stopped)
}

// trigger measures the time from a change of all objects until the operator rests.
func (s *scale) trigger(b *testing.B, what, path string) {
	b.Helper()
	passes, began, cpu := s.passes.Load(), time.Now(), cpuTime(b)
	answer, err := http.Post(s.server+path, "", nil) //nolint:noctx // a benchmark
	must(b, err)
	must(b, answer.Body.Close())
	done := s.settle(b, passes+int64(s.size))
	b.ReportMetric(done.Sub(began).Seconds(), what+"-s")
	b.ReportMetric((cpuTime(b) - cpu).Seconds(), what+"-cpu-s")
	b.ReportMetric(float64(s.passes.Load()-passes)/float64(s.size), what+"-passes/object")
	s.quiet(b)
}

// settle waits until the number of passes is reached and none has ended for two seconds. It returns when the last one ended.
func (s *scale) settle(b *testing.B, passes int64) (last time.Time) {
	b.Helper()
	err := wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, 4*time.Minute, true, func(context.Context) (bool, error) {
		last = time.Unix(0, s.last.Load())
		return s.passes.Load() >= passes && time.Since(last) > 2*time.Second, nil
	})
	if err != nil {
		sent := s.count.Sent()
		b.Fatalf("%d passes of %d: %v; sent %d requests, such as %v", s.passes.Load(), passes, err, len(sent), sent[:min(len(sent), 5)])
	}
	return last
}

func (s *scale) quiet(b *testing.B) {
	b.Helper()
	if sent := s.count.Sent(); len(sent) > 0 {
		b.Fatalf("%d requests, such as %s", len(sent), sent[0])
	}
}

// scrape measures one read of the metrics.
func (s *scale) scrape(b *testing.B) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	families, err := ctrlmetrics.Registry.Gather()
	must(b, err)
	b.ReportMetric(time.Since(began).Seconds(), "scrape-s")
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), "scrape-alloc-MiB")
	for _, family := range families {
		if family.GetName() == "opblocks_condition" {
			b.ReportMetric(float64(len(family.GetMetric())), "series")
		}
	}
}

// cpuTime returns the processor time of this process.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// resetPeak lets peak begin again. It does nothing where the system cannot do so.
func resetPeak(b *testing.B) {
	runtime.GC()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Log(err)
	}
}

// peak returns the largest resident memory of this process so far, 0 where the system does not have it.
func peak(b *testing.B) (size int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Log(err)
		return 0
	}
	return statusField(b, status, "VmHWM:")
}

// statusField returns a size from a process's status file, in bytes.
func statusField(b *testing.B, status []byte, field string) (size int64) {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			_, err := fmt.Sscanf(value, "%d kB", &size)
			must(b, err)
		}
	}
	return size << 10
}

func (s *scale) profile(b *testing.B) {
	if os.Getenv("SCALE_PROFILE") == "" {
		return
	}
	f, err := os.Create(os.Getenv("SCALE_PROFILE"))
	must(b, err)
	runtime.GC()
	must(b, pprofHeap(f))
	must(b, f.Close())
}

func pprofHeap(w io.Writer) error { return pprof.Lookup("heap").WriteTo(w, 0) }
