package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
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

func podLabels(m *cachev1alpha1.Memcached) map[string]string {
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

// listPods returns the pods of a Memcached, sorted by name, without those that have ended or are terminating.
func listPods(ctx context.Context, c client.Client, m *cachev1alpha1.Memcached) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{PodIndex: ownedresources.LabelValue(m.Name)},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return hasEnded(&p) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
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
