package ownedresources

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// withShops adds the kind Shop to the scenario.
func withShops(s reconciletest.Scenario) reconciletest.Scenario {
	s.Scheme, s.CRDs = scheme.Scheme, []string{shopsFile}
	return s
}

// startSet returns a function that starts an operator, whose only step is a set of children of a Shop.
func startSet(set func() *ChildSet[*Shop]) func(*reconciletest.Process) error {
	return startSteps(func() []reconcile.NamedStep[*Shop] {
		return []reconcile.NamedStep[*Shop]{reconcile.Named("children", set())}
	})
}

func startSteps(steps func() []reconcile.NamedStep[*Shop]) func(*reconciletest.Process) error {
	return func(p *reconciletest.Process) error {
		return reconcile.For(p.Manager(reconcile.CacheOptions()), steps()...).Complete()
	}
}

// changeShop returns an action that changes the spec of the shop that newShop returns.
func changeShop(edit func(*ShopSpec)) reconciletest.Action {
	return reconciletest.Change(newShop(), func(s *Shop) { edit(&s.Spec) })
}

// annotateShop returns an action that sets an annotation of the shop, on which no child depends. Put it between the creation and the
// deletion of the shop. Some faults do the next action early. If that were the deletion, the shop could be deleted before it has its
// finalizer.
func annotateShop() reconciletest.Action {
	return reconciletest.Change(newShop(), func(s *Shop) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.com/note", "changed") })
}

// removeShopByForce returns an action that deletes the shop and removes its finalizers.
func removeShopByForce() reconciletest.Action {
	return reconciletest.Do("remove the shop by force", func(ctx context.Context, c client.Client) error {
		shop := newShop()
		if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			return client.IgnoreNotFound(err)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Patch(ctx, shop, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(c.Delete(ctx, shop))
	})
}

func withShards(n int32) func(*ShopSpec) { return func(s *ShopSpec) { s.Shards = n } }

func withVersion(version string) func(*ShopSpec) { return func(s *ShopSpec) { s.Version = version } }

func withContent(content string) func(*ShopSpec) { return func(s *ShopSpec) { s.Content = content } }

func withStorage(size string) func(*ShopSpec) {
	return func(s *ShopSpec) { s.Storage = new(resource.MustParse(size)) }
}

// seenUIDs has the first UID that was seen for each name during a run.
type seenUIDs map[string]types.UID

// State returns nil, because a scenario compares only the objects.
func (seenUIDs) State() any { return nil }

// isAnother reports whether an object with another UID was seen before under the name.
func (s seenUIDs) isAnother(name string, uid types.UID) bool {
	if _, known := s[name]; !known {
		s[name] = uid
	}
	return s[name] != uid
}

// migration builds a Job that migrates the data to the shop's version.
func migration(owner *Shop, ttl *int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Labels: map[string]string{"app": owner.Name}}, // without labels the Job would get the labels of its pods
		Spec: batchv1.JobSpec{
			TTLSecondsAfterFinished: ttl,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "migrate", Image: "migrate:" + owner.Spec.Version}},
			}},
		},
	}
}

// statefulSet builds a StatefulSet whose claim template requests the shop's storage.
func statefulSet(owner *Shop) *appsv1.StatefulSet {
	labels := map[string]string{"app": owner.Name}
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
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *owner.Spec.Storage}},
				},
			}},
		},
	}
}
