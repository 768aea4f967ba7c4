package controller

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

const (
	configMap = "ConfigMap"
	secret    = "Secret"

	// annotationConfiguration rolls the pods when the ConfigMaps and Secrets that they use change. It is a hash of these
	// objects' UIDs and resource versions.
	annotationConfiguration = "app.huolala.cn/configuration"

	// ReferenceIndex is the field index under which the Apps that use a ConfigMap or Secret are found.
	ReferenceIndex = "reference"
)

// metadataOf is an object of a kind of which nothing but the metadata is read.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// IndexReferences gives an App's values in the [ReferenceIndex]: "ConfigMap/name" and "Secret/name".
func IndexReferences(obj client.Object) []string {
	var all []string
	if app, ok := obj.(*appv1.App); ok {
		for _, ref := range app.Spec.ConfigMapRefs {
			all = append(all, configMap+"/"+ref.Name)
		}
		for _, ref := range app.Spec.SecretRefs {
			all = append(all, secret+"/"+ref.Name)
		}
	}
	return all
}

func appsUsing(c client.Reader, kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []ctrl.Request {
		var apps appv1.AppList
		if err := c.List(ctx, &apps, client.InNamespace(obj.GetNamespace()),
			client.MatchingFields{ReferenceIndex: kind + "/" + obj.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Apps that use it", "kind", kind, "name", obj.GetName())
		}
		requests := make([]ctrl.Request, len(apps.Items))
		for i := range apps.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&apps.Items[i])
		}
		return requests
	}
}

// readConfiguration marks the App, in memory only, with what its pods are to be rolled for. While something is missing
// they are left as they are: new ones might not start.
func readConfiguration(ctx context.Context, c client.Client, app *appv1.App) error {
	delete(app.Annotations, annotationConfiguration)
	var used []metav1.Object
	var missing []string
	for _, ref := range IndexReferences(app) {
		kind, name, _ := strings.Cut(ref, "/")
		obj := metadataOf(kind)
		err := c.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: name}, obj)
		switch {
		case client.IgnoreNotFound(err) != nil: // without a mark the pods would be rolled
			return reconcile.Halt(fmt.Errorf("read %s %s: %w", kind, name, err))
		case err != nil:
			missing = append(missing, kind+" "+name)
		default:
			used = append(used, obj)
		}
	}
	if len(used)+len(missing) == 0 {
		return nil
	}
	mark, err := ownedresources.Hash(ownedresources.Versions(used...))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKeyFromObject(app), &d, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return reconcile.Halt(fmt.Errorf("read the Deployment: %w", err))
		}
		if now, marked := d.Spec.Template.Annotations[annotationConfiguration]; marked {
			mark = now
		}
	}
	metav1.SetMetaDataAnnotation(&app.ObjectMeta, annotationConfiguration, mark)
	if len(missing) > 0 {
		return reconcile.Wait("ReferenceNotFound", 0, "%s: not found", strings.Join(missing, ", "))
	}
	return nil
}
