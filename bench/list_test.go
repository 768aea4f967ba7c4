package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// parts are the ConfigMaps of a site: as many as it has replicas.
func parts(s *api.Site) (all []*corev1.ConfigMap, err error) {
	for i := range int(s.Spec.Replicas) {
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%05d", s.Name, i), Labels: ownedresources.Labels(s)},
			Data:       map[string]string{"image": s.Spec.Image},
		})
	}
	return all, nil
}

// BenchmarkList measures the same number of children in two forms: a list of one owner, and one child each of many owners.
// It measures how long it takes until all exist, reconciled one after another, and then a pass over all with nothing to do,
// by the child. Run it with -benchtime=1x.
func BenchmarkList(b *testing.B) {
	for _, children := range []int{100, 1_000} {
		b.Run(fmt.Sprintf("objects=%d", children), func(b *testing.B) {
			inTurns(b, []string{"one-owner", "one-child-each"}, func(b *testing.B, form string) {
				owners := 1
				if form == "one-child-each" {
					owners = children
				}
				for b.Loop() {
					measureList(b, owners, children/owners)
				}
			})
		})
	}
}

func measureList(b *testing.B, owners, children int) {
	b.Helper()
	cp := controlPlane(b)
	must(b, cp.InstallCRDs(b.Context(), "api"))
	namespace := controlplane.Namespace(b, cp)
	scheme := newScheme()
	direct, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	must(b, err)
	var all []client.ObjectKey
	for i := range owners {
		s := newSite(namespace, siteName(i))
		s.Spec.Replicas = int32(children)
		must(b, direct.Create(b.Context(), s))
		all = append(all, client.ObjectKeyFromObject(s))
	}
	count := &requests.Count{}
	mgr, err := ctrl.NewManager(count.Wrap(cp.Config()), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	must(b, err)
	r := reconcile.New(mgr.GetClient(), reconcile.Named("parts", ownedresources.Ensure(ownedresources.BuildEach(parts))))
	must(b, r.SetupWithBuilder(mgr, ctrl.NewControllerManagedBy(mgr).For(&api.Site{})))
	for _, obj := range []client.Object{&api.Site{}, &corev1.ConfigMap{}} {
		_, err := mgr.GetCache().GetInformer(b.Context(), obj)
		must(b, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() { stop(); must(b, <-done) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		b.Fatal("the cache did not sync")
	}
	pass := func() time.Duration {
		start := time.Now()
		for _, name := range all {
			_, err := r.Reconcile(b.Context(), ctrl.Request{NamespacedName: name})
			must(b, err)
		}
		return time.Since(start)
	}
	converged := pass()
	must(b, wait.PollUntilContextTimeout(b.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		pass()
		return len(count.Sent()) == 0, nil // the cache shows all
	}))
	const passes = 20
	var quiet time.Duration
	for range passes {
		quiet += pass()
	}
	if sent := count.Sent(); len(sent) > 0 {
		b.Fatalf("%d requests in passes with nothing to do: %v", len(sent), sent[:min(len(sent), 5)])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(converged.Milliseconds()), "ms/convergence")
	b.ReportMetric(float64(quiet.Nanoseconds())/float64(passes*owners*children), "ns/quiet-child")
}
