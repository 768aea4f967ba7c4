// Package controller deploys apps as App objects describe them.
package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// What the operator may do; `make manifests` writes the roles. The finalizers are not ours, but the API server asks for
// them before it accepts an owner reference that blocks the owner's deletion.
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/status,verbs=patch
// +kubebuilder:rbac:groups=app.huolala.cn,resources=apps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=list;watch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create;get;update

// former is who wrote the children that the tutorial's operator left: its binary in the image, and as run from sources.
var former = ownedresources.FormerManagers("manager", "app", "app-operator", "main", "__debug_bin")

// Steps are what is done for an App, in this order.
func Steps() []reconcile.NamedStep[*appv1.App] {
	return []reconcile.NamedStep[*appv1.App]{
		reconcile.Named("annotation", reconcile.Func(removeSpecAnnotation)),
		reconcile.Named("configuration", reconcile.Func(readConfiguration),
			reconcile.Referencing(&corev1.ConfigMap{}, configMaps), reconcile.Referencing(&corev1.Secret{}, secrets)),
		reconcile.Named("workload", ownedresources.Ensure(
			ownedresources.Build(deployment, former), ownedresources.Build(disruptionBudget))),
		reconcile.Named("service", exposed{ownedresources.Ensure(ownedresources.BuildOrError(service, former))},
			reconcile.Reporting(conditionServiceReady)),
		reconcile.Named("status", reconcile.Func(copyStatus)),
	}
}

// SetupWithManager adds the controller to a manager, whose cache should be made by [Cache].
func SetupWithManager(mgr ctrl.Manager) error {
	return reconcile.For(mgr, Steps()...).WithConditions(Conditions).Complete()
}

// Cache restricts the manager's cache to some namespaces, or none for all.
func Cache(namespaces ...string) cache.Options {
	options := reconcile.CacheOptions(namespaces...)
	options.DefaultTransform = slim()
	return options
}

// slim takes out what nobody reads. Of ConfigMaps and Secrets that includes the annotations, in one of which kubectl
// keeps all that it applied.
func slim() toolscache.TransformFunc {
	compact := reconcile.TransformCompact()
	return func(obj any) (any, error) {
		if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
			m.Labels, m.Annotations = nil, nil
		}
		return compact(obj)
	}
}

// annotationSpec is where the tutorial's operator kept the whole spec, with the values of the environment.
const annotationSpec = "spec"

func removeSpecAnnotation(ctx context.Context, c client.Client, app *appv1.App) error {
	_, err := reconcile.PatchAnnotations(ctx, c, app, nil, annotationSpec)
	return client.IgnoreNotFound(err)
}
