package bench

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// The ways to write the same operator.
const (
	opblocks        = "opblocks"
	tutorial        = "hand-written"
	careful         = "create-or-update"
	wholeSpec       = "create-or-update-whole-spec"
	createOrPatch   = "create-or-patch"
	serverSideApply = "apply-on-every-pass"
	podsOfOpblocks  = "opblocks-pods"
	podsOfTutorial  = "hand-written-pods"
	withFinalizer   = "opblocks-finalizer"
	withoutEvents   = "opblocks-without-events"
)

var (
	// allVariants look after a Deployment, a Service and a condition.
	allVariants = []string{opblocks, tutorial, careful, createOrPatch, wholeSpec, serverSideApply}
	// mainVariants are measured where measuring all would take too long.
	mainVariants = []string{opblocks, withoutEvents, tutorial, careful}
	// convergenceVariants show as well what the events of opblocks cost: the others emit none.
	convergenceVariants = append(allVariants, withoutEvents)
	// podVariants list the pods of the object as well, and record their names.
	podVariants = []string{podsOfOpblocks, podsOfTutorial}
)

// sendsInEveryPass reports whether a variant sends requests although nothing has changed.
func sendsInEveryPass(variant string) bool { return variant == wholeSpec || variant == serverSideApply }

// newReconciler returns the reconciler of a variant. It sets up what the reconciler takes from the manager, but no controller.
func newReconciler(mgr ctrl.Manager, variant string) (ctrlreconcile.Reconciler, error) {
	c := mgr.GetClient()
	switch variant {
	case opblocks, podsOfOpblocks, withFinalizer:
		r := reconcile.New(c, steps(variant)...)
		return r, r.SetupWithBuilder(mgr, ctrl.NewControllerManagedBy(mgr).For(&api.Site{}))
	case tutorial:
		return &handWritten{c}, nil
	case podsOfTutorial:
		return &handWrittenWithPods{handWritten{c}}, nil
	case tenOfCareful:
		return &upsertingTen{c}, nil
	case careful, wholeSpec, createOrPatch:
		return newUpserting(c, variant), nil
	default:
		return &applying{c}, nil
	}
}

// steps returns the steps of the variants of opblocks.
func steps(variant string) []reconcile.NamedStep[*api.Site] {
	all := []reconcile.NamedStep[*api.Site]{
		reconcile.Named("children", ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service))),
	}
	switch variant {
	case podsOfOpblocks:
		all = append(all, reconcile.Named("pods", reconcile.Func(recordPods), reconcile.Watching(&corev1.Pod{}, siteOfPod)))
	case withFinalizer:
		all = append(all, reconcile.Named("registration", registration{}).Finalizer("bench.opblocks.dev/registration"))
	}
	return all
}

// registration is a step with a cleanup. It does nothing, so that the library sends all requests.
type registration struct{}

func (registration) Reconcile(context.Context, client.Client, *api.Site) error { return nil }

func (registration) Finalize(context.Context, client.Client, *api.Site) error { return nil }

// siteIndex is the index of pods by the name of their site.
const siteIndex = "site"

func indexPods(mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, siteIndex, func(pod client.Object) []string {
		return []string{pod.GetLabels()["site"]}
	})
}

// recordPods is a step that lists the pods of a site from the cache.
func recordPods(ctx context.Context, c client.Client, s *api.Site) error {
	pods, err := reconcile.List[*corev1.Pod](ctx, c, &corev1.PodList{}, client.InNamespace(s.Namespace), client.MatchingFields{siteIndex: s.Name})
	if err != nil {
		return err
	}
	names := make([]string, 0, s.Spec.Replicas)
	for pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	s.Status.Nodes = names
	return nil
}

func siteOfPod(_ context.Context, _ client.Reader, pod *corev1.Pod) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels["site"]}}}
}

// cacheOptions returns the cache options that operators of this variant usually have.
func cacheOptions(variant, namespace string) cache.Options {
	if variant == opblocks || variant == withoutEvents || variant == tenOfOpblocks {
		return reconcile.CacheOptions(namespace)
	}
	return cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
}

// addController adds the controller of a variant to the manager, as its author would.
func addController(mgr ctrl.Manager, variant string) error {
	switch variant {
	case opblocks:
		return reconcile.For(mgr, steps(variant)...).Complete()
	case tenOfOpblocks:
		return reconcile.For(mgr, tenChildren()).Complete()
	case withoutEvents:
		return reconcile.For(silentManager{mgr}, steps(variant)...).Complete()
	}
	r, err := newReconciler(mgr, variant)
	if err != nil {
		return err
	}
	if variant == tenOfCareful {
		return ctrl.NewControllerManagedBy(mgr).For(&api.Site{}).Owns(&corev1.ConfigMap{}).Complete(r)
	}
	return ownsChildren(mgr).Complete(r)
}

func ownsChildren(mgr ctrl.Manager) *ctrl.Builder {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Site{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{})
}

// silentManager is a manager without events.
type silentManager struct{ ctrl.Manager }

func (silentManager) GetEventRecorder(string) ctrlrecorder.EventRecorder {
	return &events.FakeRecorder{}
}
