package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile"
)

// Labels that package ownedresources sets on children. The labels of the selector are set on pods, too.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// kindLabels are the labels of the children of every Cache.
var kindLabels = ownedresources.Labels(&storev1alpha1.Cache{})

func podLabels(c *storev1alpha1.Cache) labels.Set {
	return labels.Set{labelName: kindLabels[labelName], labelInstance: c.Name}
}

func podToCache(_ context.Context, _ client.Reader, pod *corev1.Pod) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[labelInstance]}}}
}

// checkPods is the step that waits for pods that do not start. It comes before those that build them: if an image cannot be pulled,
// this is why the StatefulSet is not complete, and Ready takes its reason from the first step that waits.
func checkPods(ctx context.Context, c client.Client, store *storev1alpha1.Cache) error {
	set, err := statefulSetOf(ctx, c, store)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(store.Namespace), client.MatchingLabels(podLabels(store)), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	if blocker := workload.CheckStart(set, pods.Items); blocker.Reason != "" {
		return reconcile.Wait(blocker.Reason, 0, "%s", blocker.Message)
	}
	return nil
}

// updateStatus is the step that records the pods in the status. It comes after the one that finds the StatefulSet ready, so it does
// not read an older one.
func updateStatus(ctx context.Context, c client.Client, store *storev1alpha1.Cache) error {
	set, err := statefulSetOf(ctx, c, store)
	if err != nil {
		return err
	}
	store.Status.ReadyReplicas = set.Status.ReadyReplicas
	store.Status.Selector = podLabels(store).String()
	store.Status.PasswordSecret = passwordSecretName(store)
	return nil
}

// statefulSetOf returns the StatefulSet of a Cache, or an empty one if it has none.
func statefulSetOf(ctx context.Context, c client.Client, store *storev1alpha1.Cache) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(store), set, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(set, store) {
		return &appsv1.StatefulSet{}, nil
	}
	return set, nil
}
