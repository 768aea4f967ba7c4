package ownedresources

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// ObjectMeta returns metadata for a child of any kind: the name and the namespace of its owner, and [Labels]. All
// builders of this package use ObjectMeta. The owner reference is added when the child is applied.
//
// The name fits most kinds. A Service, a StatefulSet, a Job and a CronJob need shorter names than a custom resource may
// have: see [ValidateName].
func ObjectMeta(owner client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: owner.GetName(), Labels: Labels(owner)}
}

// PodTemplate returns a template for pods with these labels and containers, for a kind that has no builder here. It is a
// plain struct: edit it before it is applied.
//
// If selector is nil, the labels are app.kubernetes.io/name and app.kubernetes.io/instance of [Labels]. The other labels are left out, so
// that a change of them replaces no pods. Two workloads of one owner need different selectors: otherwise a Service, a PodDisruptionBudget
// or a NetworkPolicy for one workload also selects the pods of the other.
//
// Pods and containers meet the Pod Security Standard "restricted"
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/). The containers' own security contexts are
// kept where they are set. An image whose user is not a number also needs RunAsUser. For an image that cannot meet the
// standard, set SecurityContext of the pod and of the containers to nil. Init containers that are added later need a
// security context of their own.
//
// PodTemplate does not change selector and containers.
func PodTemplate(owner client.Object, selector map[string]string, containers ...corev1.Container) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selectorOrDefault(owner, selector)},
		Spec:       podSpec(containers),
	}
}

// podSpec returns a pod of these containers that meets the Pod Security Standard "restricted".
func podSpec(containers []corev1.Container) corev1.PodSpec {
	containers = slices.Clone(containers) // they may be part of the owner's spec, which is in the cache
	for i := range containers {
		containers[i].SecurityContext = restricted(containers[i].SecurityContext)
	}
	return corev1.PodSpec{
		Containers: containers,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

// restricted returns a copy of a container's security context, in which the fields are set that the standard "restricted" asks for in
// each container. The other fields of the standard can be set for the whole pod.
func restricted(given *corev1.SecurityContext) *corev1.SecurityContext {
	c := given.DeepCopy()
	if c == nil {
		c = &corev1.SecurityContext{}
	}
	if c.AllowPrivilegeEscalation == nil {
		c.AllowPrivilegeEscalation = new(false)
	}
	if c.Capabilities == nil {
		c.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return c
}

// NewConfigMap returns a ConfigMap with the name and namespace of its owner, and this data. It is a plain struct: edit it
// before it is applied.
//
// Keys that others add to the live ConfigMap stay. Pods that read the data as environment variables do not see a change of the data: see
// [SetHash].
func NewConfigMap(owner client.Object, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: ObjectMeta(owner), Data: maps.Clone(data)}
}

// NewSecret returns a Secret with the name and namespace of its owner, and this data. It is a plain struct: edit it before
// it is applied.
//
// The type is unset, so the API server sets Opaque. The type is immutable once the Secret exists. Keys that others add to
// the live Secret stay. Values may also be set as text, in StringData: they are sent as data.
func NewSecret(owner client.Object, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: ObjectMeta(owner), Data: maps.Clone(data)}
}

// The labels that Kubernetes recommends,
// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = owned.InstanceLabel
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// Labels returns the recommended labels for the children of an owner, in a new map:
//
//   - app.kubernetes.io/name is the owner's kind in lower case;
//   - app.kubernetes.io/instance is the owner's name, shortened by [LabelValue];
//   - app.kubernetes.io/managed-by is the owner's kind in lower case with the suffix "-operator".
//
// A child without an owner reference ([Child.Anywhere], [Child.Retain]) is written without app.kubernetes.io/instance: deployment tools
// would take the child for a part of an application of that name, and delete it. A Pod, a Service, a PersistentVolume, a Namespace and a
// ClusterRole keep the label, which others may select, and get the annotation argocd.argoproj.io/sync-options: Prune=false.
//
// [ObjectMeta] sets these labels, so every builder of this package sets them.
func Labels(owner client.Object) map[string]string {
	all := defaultSelector(owner)
	all[labelManagedBy] = all[labelName] + "-operator"
	return all
}

// OnlyChildren limits the cache of a manager to children, for the option ByObject of cache.Options:
//
//	cache.Options{ByObject: ownedresources.OnlyChildren(&v1.App{}, &appsv1.Deployment{}, &corev1.Service{})}
//
// The cache then holds only those objects of these kinds that have the labels app.kubernetes.io/name and app.kubernetes.io/managed-by, as
// [Labels] returns them for any owner of this kind. Without it the cache holds all objects of the kinds in the cluster. Name a kind only if
// the operator reads no other objects of it. A child without these labels is not created: the error is a [*NotCachedError]. If an earlier
// release created a child without these labels, and the child is still desired, it gets the labels. If it is not desired any more, it stays
// until its owner is deleted. If an object of somebody else has the labels, it is in the cache too, but it is not treated as a child. The
// map is new, and may be changed.
func OnlyChildren(owner client.Object, kinds ...client.Object) map[client.Object]cache.ByObject {
	ofAll := Labels(owner)
	delete(ofAll, labelInstance)
	byObject := make(map[client.Object]cache.ByObject, len(kinds))
	for _, kind := range kinds {
		byObject[kind] = cache.ByObject{Label: labels.SelectorFromSet(ofAll)}
	}
	return byObject
}

// defaultSelector returns the two labels of [Labels] that never change while the owner exists.
func defaultSelector(owner client.Object) map[string]string {
	return map[string]string{labelName: kindName(owner), labelInstance: LabelValue(owner.GetName())}
}

// selectorOrDefault returns a copy of the selector that a builder was called with, or the default one.
func selectorOrDefault(owner client.Object, selector map[string]string) map[string]string {
	if selector == nil {
		return defaultSelector(owner)
	}
	return maps.Clone(selector)
}

// labelSelector returns a builder's selector, or the default selector, as a metav1.LabelSelector. It is for kinds whose selector is not a
// plain map.
func labelSelector(owner client.Object, selector map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: selectorOrDefault(owner, selector)}
}

// kindName returns the owner's kind in lower case. It uses the name of the Go type, so it needs no scheme.
func kindName(owner client.Object) string {
	return strings.ToLower(reflect.TypeOf(owner).Elem().Name())
}

// LabelValue returns a label value for the name of an object. A name may have 253 characters, a label value only 63. A name of at most 62
// characters is returned unchanged. A longer name is cut and ends in a hash of the whole name: the value then has 63 characters, so it
// never equals the value of a short name.
func LabelValue(name string) string { return owned.LabelValue(name) }
