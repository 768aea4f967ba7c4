//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// statefulSets is a controller of StatefulSets, and binds their claims.
func statefulSets(ctx context.Context, c client.Client) error {
	var all appsv1.StatefulSetList
	if err := c.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		if set := &all.Items[i]; set.DeletionTimestamp == nil {
			if err := rollOut(ctx, c, set); err != nil {
				return fmt.Errorf("roll out StatefulSet %s: %w", set.Name, err)
			}
		}
	}
	return nil
}

func rollOut(ctx context.Context, c client.Client, set *appsv1.StatefulSet) error {
	for i := range *set.Spec.Replicas {
		name := fmt.Sprint(set.Name, "-", i)
		claim := set.Spec.VolumeClaimTemplates[0].DeepCopy()
		claim.Namespace, claim.Name, claim.Labels = set.Namespace, claim.Name+"-"+name, set.Spec.Selector.MatchLabels
		if err := ensureClaim(ctx, c, claim); err != nil {
			return err
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: set.Spec.Selector.MatchLabels}, Spec: set.Spec.Template.Spec}
		if err := ensurePod(ctx, c, set, pod); err != nil {
			return err
		}
	}
	surplus := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprint(set.Name, "-", *set.Spec.Replicas)}}
	if err := c.Delete(ctx, surplus); client.IgnoreNotFound(err) != nil {
		return err
	}
	n := *set.Spec.Replicas
	status := appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, CurrentReplicas: n, UpdatedReplicas: n, AvailableReplicas: n}
	if set.Status.ObservedGeneration == status.ObservedGeneration && set.Status.Replicas == n {
		return nil
	}
	set.Status = status
	return c.Status().Update(ctx, set)
}

func ensureClaim(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := c.Create(ctx, claim); err != nil {
		return err
	}
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
	return c.Status().Update(ctx, claim)
}

// ensurePod creates a pod, or adopts one that has no controller.
func ensurePod(ctx context.Context, c client.Client, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	ref := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	switch err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); {
	case apierrors.IsNotFound(err):
		pod.OwnerReferences = []metav1.OwnerReference{ref}
		return c.Create(ctx, pod)
	case err != nil || len(pod.OwnerReferences) > 0:
		return err
	}
	pod.OwnerReferences = []metav1.OwnerReference{ref}
	return c.Update(ctx, pod)
}

// pods are the UIDs of the pods that were seen, by their names.
type pods map[string]types.UID

func (pods) State() any { return nil } // what the scenario compares are the objects

// expanded returns an error if a pod was replaced, or if a claim was forgotten.
func expanded(env *reconciletest.Env) error {
	var live corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	var set appsv1.StatefulSet
	var owner Shop
	ctx, name := context.Background(), client.ObjectKeyFromObject(newShop())
	if err := errors.Join(env.List(ctx, &live), env.List(ctx, &claims)); err != nil {
		return err
	}
	for _, pod := range live.Items {
		if before, known := env.External.(pods)[pod.Name]; known && before != pod.UID {
			return errors.New("Pod " + pod.Name + " was replaced")
		}
		env.External.(pods)[pod.Name] = pod.UID
	}
	if err := errors.Join(env.Get(ctx, name, &set), env.Get(ctx, name, &owner)); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, claim := range claims.Items {
		want, have := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage(), claim.Spec.Resources.Requests.Storage()
		if want.Cmp(*have) > 0 && owner.Annotations[record.ExpansionPrefix+owner.Name] == "" {
			return fmt.Errorf("PersistentVolumeClaim %s has %s instead of %s", claim.Name, have, want)
		}
	}
	return nil
}

// TestExpandVolumesSurvivesEveryFault lets the volumes of two pods grow, and the volume of one that was scaled away
// before. No pod is replaced. Nobody but the user sets the replicas.
func TestExpandVolumesSurvivesEveryFault(t *testing.T) {
	set := func() *ChildSet[*Shop] {
		return Ensure(Build(statefulSet, ExpandVolumes()))
	}
	former := statefulSet(newShop(withStorage("1Gi"))).Spec.VolumeClaimTemplates[0]
	former.Namespace, former.Name, former.Labels = "default", "data-web-2", map[string]string{"app": "web"}
	former.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: former.Spec.Resources.Requests}
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Start: startSet(set), Objects: []client.Object{&former},
		SimulatedControllers: []reconciletest.SimulatedController{{For: &appsv1.StatefulSet{}, Step: statefulSets}, {For: &corev1.PersistentVolumeClaim{}}},
		Actions: []reconciletest.Action{
			reconciletest.Create(newShop(withStorage("1Gi"))),
			reconciletest.Do("scale to 2", func(ctx context.Context, c client.Client) error {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 2}}`))
				return c.Patch(ctx, &appsv1.StatefulSet{ObjectMeta: newShop().ObjectMeta}, patch)
			}),
			changeShop(withStorage("2Gi")),
			reconciletest.Delete(newShop()),
		},
		External: func() reconciletest.External { return pods{} },
		Always:   expanded,
		Ignore: func(obj *unstructured.Unstructured) { // a claim does not grow if its owner is deleted before; see expanded
			if obj.GetKind() == "PersistentVolumeClaim" {
				unstructured.RemoveNestedField(obj.Object, "spec", "resources")
				unstructured.RemoveNestedField(obj.Object, "status", "capacity")
			}
		},
	}), reconciletest.SkipFaults(kinds.NotFound)) // somebody who deletes a StatefulSet deletes its pods
}
