package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

const (
	labelApp       = "app"
	labelMemcached = "memcached_cr" // the Memcached's name; shortened when that is too long for a label

	// annotationMemcached on a pod is the Memcached's name as it is.
	annotationMemcached = "cache.example.com/memcached"

	// PodIndex is the field index under which a Memcached's pods are found without a look at all others.
	PodIndex = "memcached"
)

var memcachedPods = labels.SelectorFromSet(labels.Set{labelApp: "memcached"})

func podLabels(m *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{labelApp: "memcached", labelMemcached: ownedresources.LabelValue(m.Name)}
}

// IndexPods adds the [PodIndex] to a cache.
func IndexPods(indexer client.FieldIndexer) error {
	return indexer.IndexField(context.Background(), &corev1.Pod{}, PodIndex, IndexPod)
}

// IndexPod gives a pod's values in the [PodIndex].
func IndexPod(pod client.Object) []string { return []string{pod.GetLabels()[labelMemcached]} }

func podToMemcached(_ context.Context, _ client.Reader, pod *corev1.Pod) []ctrl.Request {
	name := cmp.Or(pod.GetAnnotations()[annotationMemcached], pod.GetLabels()[labelMemcached])
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// recordPods lists the pods in the status. It waits until as many as wanted are ready and none is stuck.
func recordPods(ctx context.Context, c client.Client, m *cachev1alpha1.Memcached) error {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{PodIndex: ownedresources.LabelValue(m.Name)},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return gone(&p) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })

	ready, reason, cause := int32(0), "", ""
	m.Status.Nodes = make([]string, len(pods))
	for i := range pods {
		m.Status.Nodes[i] = pods[i].Name
		if isReady(&pods[i]) {
			ready++
		} else if reason == "" { // of the first: which one comes first does not change from pass to pass
			reason, cause = stuck(&pods[i])
		}
	}
	m.Status.ReadyReplicas = ready
	m.Status.Available = fmt.Sprintf("%d/%d", ready, m.Spec.Size)
	m.Status.Selector = labels.Set(podLabels(m)).String()
	if reason == "" && ready >= m.Spec.Size {
		return nil
	}
	if reason == "" {
		var err error
		if reason, cause, err = blocked(ctx, c, m); err != nil {
			return err
		}
	}
	return reconcile.Wait(cmp.Or(reason, "PodsNotReady"), 0, "%d of %d pods are ready%s", ready, m.Spec.Size, cause)
}

// gone is a pod that serves nobody any more: it is terminating, or was evicted.
func gone(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// blocked gives why the Deployment makes no pods, such as FailedCreate when they exceed a quota. What comes before " is "
// names a pod that was never made, by another name each time.
func blocked(ctx context.Context, c client.Client, m *cachev1alpha1.Memcached) (reason, cause string, err error) {
	var d appsv1.Deployment
	err = c.Get(ctx, client.ObjectKeyFromObject(m), &d, client.UnsafeDisableDeepCopy)
	if err != nil || !metav1.IsControlledBy(&d, m) {
		return "", "", client.IgnoreNotFound(err)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			what, why, _ := strings.Cut(c.Message, " is ")
			return c.Reason, "; new ones: " + cmp.Or(why, what), nil
		}
	}
	return "", "", nil
}

// stuck gives why a container of the pod does not start, such as ImagePullBackOff. The kubelet's own message names the
// pod and counts seconds, so the status would be written again and again.
func stuck(pod *corev1.Pod) (reason, cause string) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason, fmt.Sprintf("; container %s with image %s waits: %s", c.Name, c.Image, w.Reason)
		}
	}
	return "", ""
}
