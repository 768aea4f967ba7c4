package ownedresources_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// pods are the UIDs of the pods that were seen, by their names.
type pods map[string]types.UID

func (pods) State() any { return nil } // what the scenario compares are the objects

func statefulSet(owner *pool) *appsv1.StatefulSet {
	labels := map[string]string{"app": owner.Name}
	size := resource.MustParse(owner.Spec.MinAvailable.String() + "Gi")
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server:1"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
				},
			}},
		},
	}
}

// expanded returns an error if a pod was replaced, or if a claim was forgotten.
func expanded(env *reconciletest.Env) error {
	var live corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	var set appsv1.StatefulSet
	var owner pool
	ctx, name := context.Background(), client.ObjectKeyFromObject(newPool(0))
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
		if want.Cmp(*have) > 0 && owner.Annotations[ownedresources.ExpandVolumesPrefix+owner.Name] == "" {
			return fmt.Errorf("PersistentVolumeClaim %s has %s instead of %s", claim.Name, have, want)
		}
	}
	return nil
}

// TestExpandVolumesSurvivesEveryFault lets the volumes of two pods grow, and that of one that was scaled away before. No pod
// is replaced. Nobody but the user sets the replicas.
func TestExpandVolumesSurvivesEveryFault(t *testing.T) {
	set := func() *ownedresources.ChildSet[*pool] {
		return ownedresources.Ensure(ownedresources.Build(statefulSet, ownedresources.ExpandVolumes()))
	}
	former := statefulSet(newPool(1)).Spec.VolumeClaimTemplates[0]
	former.Namespace, former.Name, former.Labels = "default", "data-pool-2", map[string]string{"app": "pool"}
	former.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: former.Spec.Resources.Requests}
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme.Scheme, Start: runs(set), Objects: []client.Object{&former},
		Actions: []reconciletest.Action{
			reconciletest.Create(newPool(1)),
			reconciletest.Do("scale to 2", func(ctx context.Context, c client.Client) error {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 2}}`))
				return c.Patch(ctx, &appsv1.StatefulSet{ObjectMeta: poolName}, patch)
			}),
			setPool(2),
			reconciletest.Delete(newPool(0)),
		},
		External: func() reconciletest.External { return pods{} },
		Always:   expanded,
		// A claim does not grow if its owner is deleted before; see expanded.
		Ignore: reconciletest.IgnoreFields("PersistentVolumeClaim", "spec.resources", "status.capacity", "status.allocatedResources"),
	}, reconciletest.SkipFaults(reconciletest.NotFound)) // somebody who deletes a StatefulSet deletes its pods
}
