// Package controller runs memcached as Memcached objects describe it.
package controller

import (
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// What the operator may do; `make manifests` writes the roles. The finalizers are not ours, but the API server asks for
// them before it accepts an owner reference that blocks the owner's deletion.
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=create;get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update

// Who wrote the Deployments that an operator of the tutorial left: its binary in the image, and as run from sources.
var tutorialManagers = []string{"manager", "memcached-operator", "main", "memcached-operator-local", "__debug_bin"}

// Steps are what is done for a Memcached, in this order. The pods come first: when an image cannot be pulled, that is
// why the Deployment is not complete, and so the reason that Ready gives.
func Steps() []reconcile.NamedStep[*cachev1alpha1.Memcached] {
	return []reconcile.NamedStep[*cachev1alpha1.Memcached]{
		reconcile.Named("pods", reconcile.Func(recordPods),
			reconcile.Reporting("Available"), reconcile.Watching(&corev1.Pod{}, podToMemcached)),
		reconcile.Named("workload", ownedresources.Ensure(
			ownedresources.Build(deployment, ownedresources.FormerManagers(tutorialManagers...)))),
		reconcile.Named("service", ownedresources.Ensure(ownedresources.BuildOrError(service)),
			reconcile.Reporting("ServiceReady"), reconcile.Optional()),
	}
}

// SetupWithManager adds the controller to a manager, whose cache should be made by [Cache].
func SetupWithManager(mgr ctrl.Manager) error {
	if err := IndexPods(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return reconcile.For(mgr, Steps()...).Complete()
}

// Cache restricts the manager's cache to some namespaces, or none for all, and the pods in it to memcached's. Nothing
// reads managedFields from it: without them an object takes a third less memory.
func Cache(namespaces ...string) cache.Options {
	options := reconcile.CacheOptions(namespaces...)
	options.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: memcachedPods}}
	return options
}
