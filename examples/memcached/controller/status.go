package controller

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile"
)

// updateStatus is the step that records the pods in the status. It waits until enough pods are ready and all have started.
func updateStatus(ctx context.Context, c client.Client, m *cachev1.Memcached) error {
	pods, err := listPods(ctx, c, m)
	if err != nil {
		return err
	}
	ready := int32(0)
	m.Status.Nodes = make([]string, len(pods))
	for i := range pods {
		m.Status.Nodes[i] = pods[i].Name
		if isReady(&pods[i]) {
			ready++
		}
	}
	m.Status.ReadyReplicas = ready
	m.Status.Available = fmt.Sprintf("%d/%d", ready, m.Spec.Size)
	m.Status.Selector = labels.Set(podLabels(m)).String()
	blocker := workload.CheckStart(nil, pods)
	if blocker.Reason == "" {
		if ready >= m.Spec.Size {
			return nil
		}
		if blocker, err = checkDeployment(ctx, c, m); err != nil {
			return err
		}
	}
	message := fmt.Sprintf("%d of %d pods are ready", ready, m.Spec.Size)
	if blocker.Message != "" {
		message += "; " + blocker.Message
	}
	return reconcile.Wait(cmp.Or(blocker.Reason, "PodsNotReady"), 0, "%s", message)
}

// checkDeployment returns why the Deployment creates no pods, such as FailedCreate if they exceed a quota.
func checkDeployment(ctx context.Context, c client.Client, m *cachev1.Memcached) (workload.Blocker, error) {
	var d appsv1.Deployment
	err := c.Get(ctx, client.ObjectKeyFromObject(m), &d, client.UnsafeDisableDeepCopy)
	if err != nil || !metav1.IsControlledBy(&d, m) {
		return workload.Blocker{}, client.IgnoreNotFound(err)
	}
	return workload.CheckStart(&d, nil), nil
}
