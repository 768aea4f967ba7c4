package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
)

const (
	labelApp       = "app"
	labelMemcached = "memcached_cr" // name of the Memcached, shortened if it is too long for a label

	// annotationMemcached on a pod is the full name of its Memcached.
	annotationMemcached = "cache.example.com/memcached"

	// PodIndex is the field index that finds the pods of a Memcached.
	PodIndex = "memcached"
)

var memcachedPods = labels.SelectorFromSet(labels.Set{labelApp: "memcached"})

func podLabels(m *cachev1.Memcached) map[string]string {
	return map[string]string{labelApp: "memcached", labelMemcached: ownedresources.LabelValue(m.Name)}
}

// IndexPods adds [PodIndex] to a cache.
func IndexPods(indexer client.FieldIndexer) error {
	return indexer.IndexField(context.Background(), &corev1.Pod{}, PodIndex, IndexPod)
}

// IndexPod returns the values of a pod in [PodIndex].
func IndexPod(pod client.Object) []string { return []string{pod.GetLabels()[labelMemcached]} }

func podToMemcached(_ context.Context, _ client.Reader, pod *corev1.Pod) []ctrl.Request {
	name := cmp.Or(pod.GetAnnotations()[annotationMemcached], pod.GetLabels()[labelMemcached])
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// listPods returns the pods of a Memcached, sorted by name, without those that have ended or are terminating. Others may create
// pods with the same labels: they do not count.
func listPods(ctx context.Context, c client.Client, m *cachev1.Memcached) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{PodIndex: ownedresources.LabelValue(m.Name)},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return hasEnded(&p) || !isOurs(&p, m) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}

// isOurs reports whether the controller of a pod is a ReplicaSet that is named after the Deployment of a Memcached: the name of the
// Deployment, which is cut if it is too long, a dash and a hash. Nothing reads the ReplicaSet. So whoever may create pods can write
// an owner reference with such a name.
func isOurs(pod *corev1.Pod, m *cachev1.Memcached) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return false
	}
	base := owner.Name[:max(strings.LastIndex(owner.Name, "-"), 0)]
	isCut := len(owner.Name) == validation.DNS1123SubdomainMaxLength && strings.HasPrefix(m.Name, base)
	return base == m.Name || isCut
}

// hasEnded reports whether a pod is terminating, or has ended because it was evicted.
func hasEnded(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
