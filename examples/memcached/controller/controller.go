// Package controller reconciles Memcached objects: it runs memcached as they describe it.
package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// The operator's permissions, from which `make manifests` generates the roles. The operator sets no finalizers, but the API
// server requires the permission for an owner reference that blocks the owner's deletion.
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

// formerManagers are the field managers of the tutorial's operator: its binary in the image, and when run from source.
var formerManagers = []string{"manager", "memcached-operator", "main", "memcached-operator-local", "__debug_bin"}

// Steps returns the steps of a pass over a Memcached, in order. The status of the pods comes first: if an image cannot be
// pulled, this is why the Deployment is not complete, and Ready takes its reason from the first step that fails.
func Steps() []reconcile.NamedStep[*cachev1.Memcached] {
	return []reconcile.NamedStep[*cachev1.Memcached]{
		reconcile.Named("pods", reconcile.Func(updateStatus), reconcile.Watching(&corev1.Pod{}, podToMemcached)).
			Reporting("Available"),
		reconcile.Named("workload", ownedresources.Ensure(ownedresources.Build(deployment).FormerManagers(formerManagers...))),
		reconcile.Named("service", ownedresources.Ensure(ownedresources.BuildOrError(service))).
			Reporting("ServiceReady").Optional(),
	}
}

// SetupWithManager adds the controller to a manager. The manager's cache options should come from [Cache].
func SetupWithManager(mgr ctrl.Manager) error {
	if err := IndexPods(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return reconcile.For(mgr, Steps()...).Complete()
}

// Cache returns cache options for some namespaces, or for all if none is given. Only memcached's own pods, Deployments and Services are cached.
// Objects are cached without managedFields, which saves a third of the memory. Only a child whose managedFields somebody has
// cleared keeps those written since, until they are repaired: see reconcile.TransformCompact.
func Cache(namespaces ...string) cache.Options {
	options := reconcile.CacheOptions(namespaces...)
	options.ByObject = ownedresources.OnlyChildren(&cachev1.Memcached{}, &appsv1.Deployment{}, &corev1.Service{})
	options.ByObject[&corev1.Pod{}] = cache.ByObject{Label: memcachedPods}
	return options
}
