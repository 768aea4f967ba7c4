package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
)

// annotationConfiguration on the pod template is a hash of the UIDs and resource versions of the ConfigMaps and Secrets
// that the App refers to. When one of them changes, the hash changes, and the pods are replaced.
const annotationConfiguration = "app.huolala.cn/configuration"

// configuration is the hash of what an App refers to. It is empty for an App that refers to nothing.
func configuration() *ownedresources.Input[*appv1.App, string] {
	return ownedresources.VersionHash(
		ownedresources.Reads(&corev1.ConfigMap{}, func(app *appv1.App) []types.NamespacedName { return names(app.Spec.ConfigMapRefs) }),
		ownedresources.Reads(&corev1.Secret{}, func(app *appv1.App) []types.NamespacedName { return names(app.Spec.SecretRefs) }))
}

func names(references []corev1.LocalObjectReference) (names []types.NamespacedName) {
	for _, ref := range references {
		names = append(names, types.NamespacedName{Name: ref.Name})
	}
	return names
}

// keepConfiguration keeps the hash of the live pods while an object is missing: new pods might not start.
func keepConfiguration(live, desired *appsv1.Deployment) {
	if hash, ok := live.Spec.Template.Annotations[annotationConfiguration]; ok {
		metav1.SetMetaDataAnnotation(&desired.Spec.Template.ObjectMeta, annotationConfiguration, hash)
	}
}
