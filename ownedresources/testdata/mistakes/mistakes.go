// Package mistakes does not compile. Above each mistake stands a part of the compiler's message.
package mistakes

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/ownedresources"
)

func deployment(*corev1.ConfigMap) *appsv1.Deployment { return nil }

func ofPod(*corev1.Pod) *corev1.Service { return nil }

func service(*corev1.ConfigMap, *corev1.Service) (*corev1.Service, error) { return nil, nil }

var web = ownedresources.Build(deployment)

var (
	// cannot use func(*corev1.Pod) bool {…}
	_ = web.Retain(func(*corev1.Pod) bool { return true })
	// cannot use func(*appsv1.StatefulSet) {}
	_ = web.CreateOnly(func(*appsv1.StatefulSet) {})
	// cannot use func(live, desired *corev1.Pod) {}
	_ = web.KeepWhileMissing(func(live, desired *corev1.Pod) {})
	// cannot use func(*corev1.Pod) string {…}
	_ = web.Generate("key", 8, func(*corev1.Pod) string { return "" })
	// *ownedresources.Child[*"k8s.io/api/core/v1".Pod, *"k8s.io/api/core/v1".Service] does not implement ownedresources.AnyChild[*"k8s.io/api/core/v1".ConfigMap]
	_ = web.After(ownedresources.Build(ofPod))
	// does not match inferred type ownedresources.AnyChild[*"k8s.io/api/core/v1".ConfigMap]
	_ = ownedresources.Ensure(web, ownedresources.Build(ofPod))
	// does not match inferred type func(owner *"k8s.io/api/core/v1".ConfigMap, value *"k8s.io/api/apps/v1".Deployment)
	_ = ownedresources.BuildFrom(web.Live(), service)
	// T (type string) does not satisfy client.Object
	_ = ownedresources.Build(func(string) *corev1.Pod { return nil })
	// does not match inferred type *ownedresources.Child[*"k8s.io/api/core/v1".ConfigMap, *"k8s.io/api/core/v1".Secret]
	_ = ownedresources.ContentHash(web, "key")
	// cannot use &corev1.Pod{}
	_ = ownedresources.Ensure(web).Reconcile(nil, nil, &corev1.Pod{})
)
