package bench

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// BenchmarkScaleControlPlane measures what objects cost a real control plane: the memory of kube-apiserver and etcd and the
// size of etcd's file, before and after the operator has created the children of all objects, and how long that takes with
// one worker and with more. Run it with -benchtime=1x.
func BenchmarkScaleControlPlane(b *testing.B) {
	for _, size := range []int{1_000, 3_000} {
		for _, workers := range []int{1, 8} {
			b.Run(fmt.Sprintf("%d/workers-%d", size, workers), func(b *testing.B) {
				for b.Loop() {
					measureControlPlane(b, size, workers)
				}
			})
		}
	}
}

func measureControlPlane(b *testing.B, size, workers int) {
	cp := controlplane.New(b, controlplane.Options{})
	must(b, cp.InstallCRDs(b.Context(), "api"))
	namespace := controlplane.Namespace(b, cp)
	scheme := k8sruntime.NewScheme()
	must(b, clientgoscheme.AddToScheme(scheme))
	must(b, api.AddToScheme(scheme))
	folder := filepath.Dir(cp.Kubeconfig())
	programs := []string{"kube-apiserver", "etcd"}
	var before []int64
	for _, program := range programs {
		before = append(before, residentOf(b, folder, program))
	}
	file := fileSize(b, filepath.Join(folder, "etcd"))

	direct, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	must(b, err)
	workqueue.ParallelizeUntil(b.Context(), 8, size, func(i int) {
		s := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: scaleName(i)}}
		s.Spec = api.SiteSpec{Image: "nginx:1.27", Replicas: 2}
		must(b, direct.Create(b.Context(), s))
	})

	var count requests.Count
	mgr, err := ctrl.NewManager(count.Wrap(cp.Config()), ctrl.Options{
		Scheme: scheme, Cache: cache.Options{DefaultTransform: reconcile.TransformCompact()},
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: skipNames,
	})
	must(b, err)
	must(b, reconcile.For[*api.Site](mgr, reconcile.Named("children",
		ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service)))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete())
	ready := &readyCount{left: size, done: make(chan struct{}), seen: map[string]bool{}}
	informer, err := mgr.GetCache().GetInformer(b.Context(), &api.Site{}, cache.BlockUntilSynced(false))
	must(b, err)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: ready.observe, UpdateFunc: func(_, obj any) { ready.observe(obj) },
	})
	must(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	began := time.Now()
	go func() { stopped <- mgr.Start(ctx) }()
	select {
	case <-ready.done:
	case <-time.After(4 * time.Minute):
		b.Fatal("the operator has not converged after 4 minutes")
	}
	b.ReportMetric(time.Since(began).Seconds(), "s")
	sent := count.Sent()
	b.ReportMetric(float64(len(slices.DeleteFunc(sent, func(r string) bool { return strings.HasSuffix(r, " events") })))/float64(size), "requests/object")
	for i, program := range programs {
		b.ReportMetric(float64(residentOf(b, folder, program)-before[i])/float64(size)/1024, program+"-KiB/object")
	}
	b.ReportMetric(float64(fileSize(b, filepath.Join(folder, "etcd"))-file)/float64(size)/1024, "etcd-file-KiB/object")
	cancel()
	must(b, <-stopped)
}

// residentOf returns the resident memory of a program of the control plane with this folder, 0 where the system does not have it.
func residentOf(b *testing.B, folder, program string) (size int64) {
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(b, err)
	for _, path := range processes {
		command, err := os.ReadFile(path)
		arguments := bytes.Split(command, []byte{0})
		if err != nil || filepath.Base(string(arguments[0])) != program || !bytes.Contains(command, []byte(folder)) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		must(b, err)
		size = statusField(b, status, "VmRSS:")
	}
	return size
}

// fileSize returns the size of all files in a folder.
func fileSize(b *testing.B, folder string) (size int64) {
	must(b, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(path) != "db" {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	}))
	return size
}
