package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/record"
)

// AcceptsRest reports whether the API server would accept the other changes of a StatefulSet whose claim templates have to grow. It asks by
// a dry run, in which the claim templates request what they request now.
func AcceptsRest(ctx context.Context, d *owned.Desired, live *unstructured.Unstructured, grown []feature.VolumeGrowth) (bool, error) {
	rest := *d
	rest.Trial = nil
	for _, obj := range []*client.Object{&rest.Object, &rest.Full} {
		var err error
		if *obj, err = feature.WithFormerSizes(*obj, grown); err != nil {
			return false, fmt.Errorf("claim templates of %s: %w", d, err)
		}
	}
	_, err := ServerSideApply(ctx, &rest, live, client.DryRunAll)
	if !plan.IsInvalid(err) {
		return err == nil, err
	}
	asCreated, err := TryCreation(ctx, &rest)
	if err != nil {
		return false, ignoreInvalid(err)
	}
	why, err := plan.Examine(&rest, live, asCreated)
	if err != nil {
		return false, err
	}
	answer, err := KeepAdmitted(ctx, &rest, live, why, client.DryRunAll)
	return answer != nil, err
}

// GrowClaims raises the storage requests of a StatefulSet's PersistentVolumeClaims to the sizes in grown, if they request less. It finds
// the claims by their names and by the StatefulSet's selector: the controller of StatefulSets sets the labels of the selector on each
// claim.
func GrowClaims(ctx context.Context, o *owned.Owner, set *appsv1.StatefulSet, grown []feature.VolumeGrowth) error {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector of StatefulSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	claims, err := o.ListLive(ctx, feature.ClaimKind, set.Namespace, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return fmt.Errorf("volumes of StatefulSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	var errs []error
	var unbound []string
	for i := range claims {
		claim := &corev1.PersistentVolumeClaim{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(claims[i].Object, claim); err != nil {
			return err
		}
		to, ok := feature.WantedSize(claim.Name, set.Name, grown)
		from := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if !ok || to.Cmp(from) <= 0 || claim.DeletionTimestamp != nil {
			continue
		}
		name := "PersistentVolumeClaim " + client.ObjectKeyFromObject(claim).String()
		if claim.Status.Phase != corev1.ClaimBound {
			unbound = append(unbound, name)
			continue
		}
		if err := growClaim(ctx, o, &claims[i], to); err != nil {
			errs = append(errs, fmt.Errorf("expand %s from %s to %s: %w", name, from.String(), to.String(), err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(unbound) > 0 {
		return owned.NewWaiting(feature.ReasonClaimNotBound, feature.ClaimRecheck, strings.Join(unbound, ", ")+": a claim can grow when it is bound")
	}
	return nil
}

// GrowLeftClaims raises the storage requests of the PersistentVolumeClaims that an earlier StatefulSet of the same name has left. Call it
// before the new StatefulSet is created, whose controller uses these claims as they are. Claims that are not bound cannot grow. They do not
// keep the StatefulSet from being created, since its pods may bind them. Without a manager the claims are not read.
func GrowLeftClaims(ctx context.Context, d *owned.Desired) error {
	if !d.Options.ExpandVolumes || d.Owner.APIReader == nil {
		return nil
	}
	set, err := feature.AsStatefulSet(d.Object)
	if err != nil {
		return err
	}
	var all []feature.VolumeGrowth
	for _, template := range set.Spec.VolumeClaimTemplates {
		if to, requests := template.Spec.Resources.Requests[corev1.ResourceStorage]; requests {
			all = append(all, feature.VolumeGrowth{Template: template.Name, To: to})
		}
	}
	err = GrowClaims(ctx, d.Owner, set, all)
	if _, unbound := errors.AsType[*owned.WaitingError](err); unbound {
		return nil
	}
	return err
}

func growClaim(ctx context.Context, o *owned.Owner, claim *unstructured.Unstructured, to resource.Quantity) error {
	request := map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": to.String()}}}
	return PatchLocked(ctx, o, claim, claim, map[string]any{}, request)
}

// KeepReplicas sets the number of replicas of a new StatefulSet that replaces a deleted one. If the desired object sets no number, the new
// StatefulSet gets the number that the deleted one had, from the owner's annotation. Anybody may have forged this annotation. So unless the
// number is 0, a pod in orphans (the pods that the new StatefulSet is going to adopt) has to have the same annotation.
func KeepReplicas(ctx context.Context, d *owned.Desired, orphans []unstructured.Unstructured) error {
	if !d.Options.ExpandVolumes || plan.DesiresReplicas(d.Object) {
		return nil
	}
	if err := d.Owner.RequireCurrent(ctx); err != nil { // an old version of the owner may have another annotation, or none
		return err
	}
	key := record.Key(record.ExpansionPrefix, d.Owner.Namespace, d.Object)
	e, value := feature.ExpansionOf(d.Owner, key), d.Owner.Object.GetAnnotations()[key]
	if e == nil || e.Replicas == nil {
		return nil
	}
	isShown := func(pod unstructured.Unstructured) bool { return pod.GetAnnotations()[key] == value }
	if *e.Replicas == 0 || slices.ContainsFunc(orphans, isShown) {
		d.Replicas = e.Replicas
	}
	return nil
}

// FinishExpansion ends the replacement of a StatefulSet after the controller has observed the new StatefulSet, and so has adopted the pods.
// It raises the requests of the claims that the controller has created for the deleted StatefulSet in between. It also removes the
// annotations about the replacement from the pods and from the owner.
func FinishExpansion(ctx context.Context, o *owned.Owner, child *owned.Declared, live client.Object) error {
	key := record.Key(record.ExpansionPrefix, o.Namespace, child.Object)
	if !child.Options.ExpandVolumes || o.Object.GetAnnotations()[key] == "" || live == nil {
		return nil
	}
	set, err := feature.AsStatefulSet(live)
	if err != nil {
		return err
	}
	if set.DeletionTimestamp != nil || set.Status.ObservedGeneration < set.Generation {
		return nil
	}
	var sizes []feature.VolumeGrowth
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		sizes = append(sizes, feature.VolumeGrowth{Template: template.Name, To: template.Spec.Resources.Requests[corev1.ResourceStorage]})
	}
	if err := GrowClaims(ctx, o, set, sizes); err != nil {
		return err
	}
	if err := unmarkPods(ctx, o, set); err != nil {
		return err
	}
	return SetRecord(ctx, o, key, "")
}
