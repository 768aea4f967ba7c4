// Package controller reconciles Eru objects: it restarts Deployments on their schedules.
package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/opblocks/opblocks/conditions"
	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile"
)

// The operator's permissions, from which `make manifests` generates the roles.
// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

// DeploymentSteps returns the steps of a pass over a Deployment.
func DeploymentSteps() []reconcile.NamedStep[*appsv1.Deployment] {
	return []reconcile.NamedStep[*appsv1.Deployment]{reconcile.Named("create-eru", reconcile.Func(createEru),
		reconcile.Watching(&eruv1.Eru{}, enqueueSameName, predicates.DeletionStarted()))}
}

// EruSteps returns the steps of a pass over an Eru.
func EruSteps(r restarts.Restarts) []reconcile.NamedStep[*eruv1.Eru] {
	return []reconcile.NamedStep[*eruv1.Eru]{reconcile.Named("restart", restartStep{r}, r.Queue().Watching()).
		Reporting(eruv1.ConditionValid).ReadsCached(&appsv1.Deployment{}, (*eruv1.Eru).Deployments)}
}

// SetupWithManager adds both controllers to a manager. The manager's cache options should come from [Cache].
func SetupWithManager(mgr ctrl.Manager, r restarts.Restarts) error {
	if err := reconcile.For(mgr, DeploymentSteps()...).WithoutStatus().
		WithPredicates(predicates.Annotation(eruv1.AnnotationEru).Changed()).Complete(); err != nil {
		return err
	}
	return reconcile.For(mgr, EruSteps(r)...).WithClock(r.Clock).
		WithHistory(func(eru *eruv1.Eru) conditions.List { return eru.History(r.Clock.Now) }).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).Complete()
}

// Cache returns cache options for some namespaces, or for all if none is given.
func Cache(namespaces ...string) cache.Options {
	options := reconcile.CacheOptions(namespaces...)
	options.DefaultTransform = dropUnused()
	return options
}

// dropUnused returns a transform that drops what nothing reads from the cache: the pod specs of Deployments, which are the
// largest part of them.
func dropUnused() toolscache.TransformFunc {
	compact := reconcile.TransformCompact()
	return func(obj any) (any, error) {
		if d, ok := obj.(*appsv1.Deployment); ok {
			d.Spec.Template.Spec = corev1.PodSpec{}
		}
		return compact(obj)
	}
}
