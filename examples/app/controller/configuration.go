package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// annotationConfiguration on the pod template is a hash of the UIDs and resource versions of the ConfigMaps and Secrets
// that the App refers to. When one of them changes, the hash changes, and the pods are replaced.
const annotationConfiguration = "app.huolala.cn/configuration"

// metadataOf returns an object of a kind to read only its metadata into.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

func configMaps(app *appv1.App) []types.NamespacedName { return names(app, app.Spec.ConfigMapRefs) }
func secrets(app *appv1.App) []types.NamespacedName    { return names(app, app.Spec.SecretRefs) }

func names(app *appv1.App, references []corev1.LocalObjectReference) (names []types.NamespacedName) {
	for _, ref := range references {
		names = append(names, types.NamespacedName{Namespace: app.Namespace, Name: ref.Name})
	}
	return names
}

// hashConfiguration sets the annotation on the App, in memory only; [deployment] copies it to the pod template. While an
// object is missing, the hash of the live pod template is used, so that pods are not replaced: new ones might not start.
func hashConfiguration(ctx context.Context, c client.Client, app *appv1.App) error {
	delete(app.Annotations, annotationConfiguration)
	var used []metav1.Object
	var missing []string
	for _, references := range []struct {
		kind  string
		names []types.NamespacedName
	}{{"ConfigMap", configMaps(app)}, {"Secret", secrets(app)}} {
		for _, name := range references.names {
			obj := metadataOf(references.kind)
			err := c.Get(ctx, name, obj)
			switch {
			case client.IgnoreNotFound(err) != nil: // without the annotation the pods would be replaced
				return reconcile.Halt(fmt.Errorf("read %s %s: %w", references.kind, name.Name, err))
			case err != nil:
				missing = append(missing, references.kind+" "+name.Name)
			default:
				used = append(used, obj)
			}
		}
	}
	if len(used)+len(missing) == 0 {
		return nil
	}
	hash, err := ownedresources.Hash(ownedresources.Versions(used...))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKeyFromObject(app), &d, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return reconcile.Halt(fmt.Errorf("read the Deployment: %w", err))
		}
		if live, ok := d.Spec.Template.Annotations[annotationConfiguration]; ok {
			hash = live
		}
	}
	metav1.SetMetaDataAnnotation(&app.ObjectMeta, annotationConfiguration, hash)
	if len(missing) > 0 {
		slices.Sort(missing)
		return reconcile.Wait("ReferenceNotFound", 0, "%s: not found", strings.Join(missing, ", "))
	}
	return nil
}
