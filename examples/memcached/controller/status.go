package controller

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// updateStatus is the step that records the pods in the status. It waits until enough pods are ready and all have started.
func updateStatus(ctx context.Context, c client.Client, m *cachev1alpha1.Memcached) error {
	pods, err := listPods(ctx, c, m)
	if err != nil {
		return err
	}
	ready, reason, message := int32(0), "", ""
	m.Status.Nodes = make([]string, len(pods))
	for i := range pods {
		m.Status.Nodes[i] = pods[i].Name
		if isReady(&pods[i]) {
			ready++
		} else if reason == "" { // of the first pod by name, so that the reason does not alternate
			reason, message = whyNotStarted(&pods[i])
		}
	}
	m.Status.ReadyReplicas = ready
	m.Status.Available = fmt.Sprintf("%d/%d", ready, m.Spec.Size)
	m.Status.Selector = labels.Set(podLabels(m)).String()
	if reason == "" && ready >= m.Spec.Size {
		return nil
	}
	if reason == "" {
		if reason, message, err = whyNotCreated(ctx, c, m); err != nil {
			return err
		}
	}
	return reconcile.Wait(cmp.Or(reason, "PodsNotReady"), 0, "%d of %d pods are ready%s", ready, m.Spec.Size, message)
}

// whyNotCreated returns why the Deployment creates no pods, such as FailedCreate if they exceed a quota, or "". It drops the
// part of the message before " is ": the name of a pod that was never created, which differs at each attempt.
func whyNotCreated(ctx context.Context, c client.Client, m *cachev1alpha1.Memcached) (reason, message string, err error) {
	var d appsv1.Deployment
	err = c.Get(ctx, client.ObjectKeyFromObject(m), &d, client.UnsafeDisableDeepCopy)
	if err != nil || !metav1.IsControlledBy(&d, m) {
		return "", "", client.IgnoreNotFound(err)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			pod, why, _ := strings.Cut(c.Message, " is ")
			return c.Reason, "; new ones: " + cmp.Or(why, pod), nil
		}
	}
	return "", "", nil
}
