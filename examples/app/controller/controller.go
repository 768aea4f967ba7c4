// Package controller reconciles App objects: it deploys apps as they describe them.
package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// The operator's permissions, from which `make manifests` generates the roles. The operator sets no finalizers, but the API
// server requires the permission for an owner reference that blocks the owner's deletion.
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/status,verbs=patch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

// formerManagers are the field managers of the tutorial's operator: its binary in the image, and when run from source.
var formerManagers = []string{"manager", "app", "app-operator", "main", "__debug_bin"}

// Steps returns the steps of a pass over an App, in order.
func Steps() []reconcile.NamedStep[*appv1.App] {
	return []reconcile.NamedStep[*appv1.App]{
		reconcile.Named("annotation", reconcile.Func(removeSpecAnnotation)),
		reconcile.Named("workload", ownedresources.Ensure(
			ownedresources.BuildFrom(configuration(), deployment).FormerManagers(formerManagers...).KeepWhileMissing(keepConfiguration),
			ownedresources.Build(disruptionBudget))),
		reconcile.Named("service", serviceStep{ownedresources.Ensure(ownedresources.BuildOrError(service).FormerManagers(formerManagers...))}).
			Reporting(conditionServiceReady),
		reconcile.Named("status", reconcile.Func(updateStatus)),
	}
}

// SetupWithManager adds the controller to a manager. The manager's cache options should come from [Cache].
func SetupWithManager(mgr ctrl.Manager) error {
	return reconcile.For(mgr, Steps()...).WithConditions(Conditions).Complete()
}

// Cache returns cache options for some namespaces, or for all if none is given. Only an App's own Deployments, Services and budgets are cached.
func Cache(namespaces ...string) cache.Options {
	options := reconcile.CacheOptions(namespaces...)
	options.DefaultTransform = dropUnused()
	options.ByObject = ownedresources.OnlyChildren(&appv1.App{}, &appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{})
	return options
}

// dropUnused returns a transform that drops what nothing reads from the cache. Labels and annotations of ConfigMaps and
// Secrets are among it: kubectl keeps all that it applied in an annotation.
func dropUnused() toolscache.TransformFunc {
	compact := reconcile.TransformCompact()
	return func(obj any) (any, error) {
		if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
			m.Labels, m.Annotations = nil, nil
		}
		return compact(obj)
	}
}

// annotationSpec is an annotation of the tutorial's operator. It holds the whole spec, with the values of the environment.
const annotationSpec = "spec"

func removeSpecAnnotation(ctx context.Context, c client.Client, app *appv1.App) error {
	_, err := reconcile.PatchAnnotations(ctx, c, app, nil, annotationSpec)
	return client.IgnoreNotFound(err)
}
