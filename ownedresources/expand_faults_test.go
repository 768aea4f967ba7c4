//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// expanded returns an error if a pod was replaced, or if a PersistentVolumeClaim still has the old size although no
// expansion is in progress.
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
		if env.External.(seenUIDs).isAnother(pod.Name, pod.UID) {
			return errors.New("Pod " + pod.Name + " was replaced")
		}
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

// TestExpandVolumesSurvivesEveryFault enlarges the volumes of two pods, and the volume of a third pod, which was
// removed by scaling down before. No pod is replaced. Only the user sets the replicas. The faults at the creation and the deletion of the
// owner are tried only in the scenario "Made".
func TestExpandVolumesSurvivesEveryFault(t *testing.T) {
	set := func() *ChildSet[*Shop] {
		return Ensure(Build(statefulSet).ExpandVolumes())
	}
	former := statefulSet(newShop(withStorage("1Gi"))).Spec.VolumeClaimTemplates[0]
	former.Namespace, former.Name, former.Labels = "default", "data-web-2", map[string]string{"app": "web"}
	former.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: former.Spec.Resources.Requests}
	created, deleted := reconciletest.Create(newShop(withStorage("1Gi"))), reconciletest.Delete(newShop())
	scaled := reconciletest.Do("scale to 2", func(ctx context.Context, c client.Client) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 2}}`))
		return c.Patch(ctx, &appsv1.StatefulSet{ObjectMeta: newShop().ObjectMeta}, patch)
	})
	tests := map[string][]reconciletest.Action{
		"Made":     {created, deleted},
		"Expanded": {created.WithoutFaults(), scaled, changeShop(withStorage("2Gi")), deleted.WithoutFaults()},
	}
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) {
			reconciletest.Explore(t, withShops(reconciletest.Scenario{
				Start: startSet(set), Objects: []client.Object{&former}, Actions: actions,
				External: func() reconciletest.External { return seenUIDs{} },
				Always:   expanded,
				// If the owner is deleted first, a claim keeps its old size; expanded checks the sizes.
				Ignore:  reconciletest.Ignore{Fields: map[string][]string{"PersistentVolumeClaim": {"spec.resources", "status.capacity"}}},
				Options: reconciletest.Options{SkipFaults: []reconciletest.FaultKind{reconciletest.Faults.NotFound}}, // whoever deletes a StatefulSet also deletes its pods
			}))
		})
	}
}
