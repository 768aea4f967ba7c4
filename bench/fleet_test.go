package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// fleet is a number of sites in one namespace, a real informer cache that has them, and the reconcilers of all
// variants.
type fleet struct {
	direct      client.Client // reads from the API server
	client      client.Client // reads from the cache
	reconcilers map[string]ctrlreconcile.Reconciler
	count       requests.Count
	names       []types.NamespacedName
}

// newFleet returns converged sites on the shared control plane.
func newFleet(b testing.TB, size int) *fleet {
	b.Helper()
	f := newSites(b, controlPlane(b), size)
	f.converge(b)
	return f
}

func newSites(b testing.TB, cp *controlplane.ControlPlane, size int) *fleet {
	b.Helper()
	must(b, cp.InstallCRDs(b.Context(), "api"))
	namespace := controlplane.Namespace(b, cp)
	f := &fleet{}
	for i := range size {
		f.names = append(f.names, types.NamespacedName{Namespace: namespace, Name: siteName(i)})
	}
	var err error
	f.direct, err = client.New(cp.Config(), client.Options{Scheme: newScheme()})
	must(b, err)
	f.each(b, "create", func(name types.NamespacedName) {
		must(b, f.direct.Create(b.Context(), newSite(name.Namespace, name.Name)))
	})
	f.start(b, cp)
	return f
}

// start starts a manager, and with it the cache.
func (f *fleet) start(b testing.TB, cp *controlplane.ControlPlane) {
	b.Helper()
	mgr, err := ctrl.NewManager(f.count.Wrap(cp.Config()), ctrl.Options{
		Scheme:  newScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(b, err)
	f.client, f.reconcilers = mgr.GetClient(), map[string]ctrlreconcile.Reconciler{}
	must(b, indexPods(mgr))
	// As in an operator, but without the queue: the benchmark calls Reconcile.
	for _, variant := range slices.Concat(allVariants, podVariants, []string{withFinalizer}) {
		f.reconcilers[variant], err = newReconciler(mgr, variant)
		must(b, err)
	}
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
}

// converge creates the children, sets the status of the Deployments as their controller would, and waits for the cache.
func (f *fleet) converge(b testing.TB) {
	pass := func(name types.NamespacedName) { f.pass(b, opblocks, name) }
	f.each(b, "create the children of", pass)
	f.each(b, "make ready", func(name types.NamespacedName) {
		var d appsv1.Deployment
		must(b, f.direct.Get(b.Context(), name, &d))
		setReplicasReady(&d)
		must(b, f.direct.Status().Update(b.Context(), &d))
	})
	var d appsv1.Deployment
	f.wait(b, &d, func() bool { return d.Status.ReadyReplicas == 2 })
	f.each(b, "see ready", pass)
	var s api.Site
	f.wait(b, &s, func() bool { return meta.IsStatusConditionTrue(s.Status.Conditions, "Ready") })
}

func setReplicasReady(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
}

// createPods creates two pods of each site, and waits until the cache has them.
func (f *fleet) createPods(b testing.TB) {
	b.Helper()
	f.each(b, "create two pods for each of", func(name types.NamespacedName) {
		for i := range 2 {
			must(b, f.direct.Create(b.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: name.Namespace, Name: fmt.Sprintf("%s-%d", name.Name, i),
					Labels: map[string]string{"app": "site", "site": name.Name},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "site", Image: "nginx:1.27"}}},
			}))
		}
	})
	var pods corev1.PodList
	f.poll(b, func() (bool, error) {
		err := f.client.List(b.Context(), &pods, client.InNamespace(f.names[0].Namespace), client.UnsafeDisableDeepCopy)
		return len(pods.Items) == 2*len(f.names), err
	})
}

// settle lets quiet variants reconcile all sites until none of them sends a request, also not in the pass after that.
func (f *fleet) settle(b testing.TB, variants ...string) {
	b.Helper()
	for _, variant := range variants {
		f.each(b, "settle with "+variant, func(name types.NamespacedName) { f.pass(b, variant, name) })
	}
	f.poll(b, func() (bool, error) {
		f.count.Sent()
		for range 2 {
			for _, variant := range variants {
				for _, name := range f.names {
					f.pass(b, variant, name)
				}
			}
		}
		return len(f.count.Sent()) == 0, nil
	})
}

// settleSending lets variants that send requests in every pass reconcile the sites of these names, and waits until the
// cache has what they have changed.
func (f *fleet) settleSending(b testing.TB, names []types.NamespacedName, variants ...string) {
	b.Helper()
	for range 2 {
		for _, variant := range variants {
			for _, name := range names {
				f.pass(b, variant, name)
			}
		}
	}
	f.waitForCache(b, names)
}

// waitForCache waits until the cache has the sites of these names and their children as they are on the API server.
func (f *fleet) waitForCache(b testing.TB, names []types.NamespacedName) {
	b.Helper()
	for _, name := range names {
		for live, cached := range map[client.Object]client.Object{
			&api.Site{}: &api.Site{}, &appsv1.Deployment{}: &appsv1.Deployment{}, &corev1.Service{}: &corev1.Service{},
		} {
			must(b, client.IgnoreNotFound(f.direct.Get(b.Context(), name, live)))
			f.poll(b, func() (bool, error) {
				err := f.client.Get(b.Context(), name, cached)
				if apierrors.IsNotFound(err) {
					return live.GetResourceVersion() == "", nil
				}
				return cached.GetResourceVersion() == live.GetResourceVersion(), err
			})
		}
	}
}

// each calls do for every site, eight at a time.
func (f *fleet) each(b testing.TB, what string, do func(types.NamespacedName)) {
	b.Helper()
	start := time.Now()
	workqueue.ParallelizeUntil(b.Context(), 8, len(f.names), func(i int) { do(f.names[i]) })
	progress("%s %d sites: %.0f s", what, len(f.names), time.Since(start).Seconds())
}

// wait reads every object into obj from the cache until is returns true for it.
func (f *fleet) wait(b testing.TB, obj client.Object, is func() bool) {
	b.Helper()
	for _, name := range f.names {
		f.poll(b, func() (bool, error) {
			if err := f.client.Get(b.Context(), name, obj, client.UnsafeDisableDeepCopy); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			return is(), nil
		})
	}
}

func (f *fleet) poll(b testing.TB, done func() (bool, error)) {
	b.Helper()
	must(b, wait.PollUntilContextTimeout(b.Context(), time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) { return done() }))
}

// pass reconciles a site once. A conflict is not a failure: the cache does not show the status that another variant has written.
func (f *fleet) pass(b testing.TB, variant string, name types.NamespacedName) {
	_, err := f.reconcilers[variant].Reconcile(b.Context(), ctrl.Request{NamespacedName: name})
	if !apierrors.IsConflict(err) {
		must(b, err)
	}
}
