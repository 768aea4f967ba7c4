package ownedresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

const (
	reasonClaimNotBound = "ClaimNotBound"
	// claimRecheck is how long to wait for claims to be bound: they are not watched.
	claimRecheck = 30 * time.Second
)

// ExpandVolumes lets the volumes of a StatefulSet grow. Without it the API server refuses a change of
// volumeClaimTemplates.
//
// If a claim template requests more storage than the live one, all claims of the StatefulSet that request less are
// changed first, also the claims of pods that were scaled away. Then the StatefulSet is deleted without its pods, and
// created again; the new one adopts the pods, which keep running. If the API server refuses to grow a claim, because
// its StorageClass does not allow it, nothing is deleted, and the error has the API server's words. While a claim is
// not bound, the error is a [*WaitingError] with the reason ClaimNotBound: only bound claims can grow.
//
// A claim template that requests less than the live one is an error (apierrors.IsInvalid), and the StatefulSet stays as
// it is: volumes cannot shrink. Other changes of claim templates are refused by the API server, as without the option.
//
// Replicas that are not desired, because an autoscaler sets them, are kept. Other fields that somebody else has set on
// the StatefulSet are lost, such as the annotation of kubectl rollout restart in its pod template; then the pods are
// replaced, by the update strategy.
//
// While the StatefulSet is missing, an annotation of the owner (expand-volumes.opblocks.dev/) names it. Its pods carry
// the same annotation and a mark: opblocks.dev/owner-uid, opblocks.dev/owner and opblocks.dev/object. The set has a
// finalizer: see [ChildSet.FinalizerName]. If the owner is deleted at that moment, the pods that carry both and have no
// controller are deleted. Claims are not.
//
// The operator needs the verb patch on the owner; list and patch on persistentvolumeclaims; and list, patch and delete
// on pods.
func ExpandVolumes() ChildOption {
	return func(o *childOptions) { o.expandVolumes = true }
}

func (o *childOptions) expandVolumesMistake(kind schema.GroupKind) error {
	if o.expandVolumes && kind != (schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}) {
		return errors.New("ExpandVolumes is for a StatefulSet: take it away; a claim that is a child itself grows without it")
	}
	return nil
}

// volumeGrowth is a claim template that requests more storage than the live one.
type volumeGrowth struct {
	template string
	from, to resource.Quantity
}

// growthOf returns the claim templates that request more than the live StatefulSet. If one requests less, the error is
// Invalid.
func growthOf(name string, want, live []corev1.PersistentVolumeClaim) (grown []volumeGrowth, err error) {
	var shrunk field.ErrorList
	for i := range want {
		j := slices.IndexFunc(live, func(c corev1.PersistentVolumeClaim) bool { return c.Name == want[i].Name })
		to, requests := want[i].Spec.Resources.Requests[corev1.ResourceStorage]
		if j < 0 || !requests {
			continue
		}
		from := live[j].Spec.Resources.Requests[corev1.ResourceStorage]
		switch to.Cmp(from) {
		case 1:
			grown = append(grown, volumeGrowth{want[i].Name, from, to})
		case -1:
			path := field.NewPath("spec", "volumeClaimTemplates").Key(want[i].Name).Child("spec", "resources", "requests", "storage")
			shrunk = append(shrunk, field.Invalid(path, to.String(), fmt.Sprintf(
				"the live claim template requests %s, and volumes cannot shrink: request at least as much", from.String())))
		}
	}
	if len(shrunk) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}, name, shrunk)
	}
	return grown, nil
}

func asStatefulSet(obj client.Object) (*appsv1.StatefulSet, error) {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		return obj, nil
	case *unstructured.Unstructured:
		set := &appsv1.StatefulSet{}
		return set, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, set)
	}
	return nil, fmt.Errorf("%T is not a StatefulSet", obj)
}

// expansionOf returns the record of an expansion under a key of the owner, or nil if this package does not write such a
// value under this key. Whoever may change the owner can write any value, so it only says where to look: see
// [applier.orphanedPods].
func expansionOf(o *owner, key string) *record.Expansion {
	e := record.ParseExpansion(o.object.GetAnnotations()[key])
	if e == nil || o.namespace != "" && e.Namespace != o.namespace ||
		key != record.Key(record.ExpansionPrefix, o.namespace, &metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}) {
		return nil
	}
	return e
}

// expandVolumes replaces a live StatefulSet whose claim templates have to grow. The error is then a [*WaitingError]. It
// returns nil if none has to grow, or if the API server would refuse other changes of the StatefulSet.
func (a *applier) expandVolumes(ctx context.Context, d *desired, live client.Object) error {
	if grown, err := d.growth(live); err != nil || len(grown) == 0 {
		return err
	}
	tree, err := a.readTree(ctx, d) // a StatefulSet is not deleted because of what the cache shows
	if err != nil {
		return fmt.Errorf("read %s: %w", d, err)
	}
	if err := d.owner.mayWrite(d, tree); err != nil {
		return err
	}
	grown, err := d.growth(tree)
	if err != nil {
		return err
	}
	if len(grown) == 0 {
		return apierrors.NewConflict(schema.GroupResource{Group: appsv1.GroupName, Resource: "statefulsets"}, d.object.GetName(),
			errors.New("its claim templates have changed, and the cache does not show that yet"))
	}
	accepted, err := a.acceptsRest(ctx, d, tree, grown)
	if err != nil || !accepted {
		return err
	}
	if _, err := a.postDryRun(ctx, d, ""); err != nil {
		return fmt.Errorf("%s is not replaced by one with larger volumes, since that would be refused: %w", d, err)
	}
	set, err := asStatefulSet(tree)
	if err != nil {
		return err
	}
	if err := a.growClaims(ctx, d.owner, set, grown); err != nil {
		return err
	}
	return a.replaceStatefulSet(ctx, d, set, tree)
}

func (d *desired) growth(live client.Object) ([]volumeGrowth, error) {
	want, err := asStatefulSet(d.object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	have, err := asStatefulSet(live)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	grown, err := growthOf(d.object.GetName(), want.Spec.VolumeClaimTemplates, have.Spec.VolumeClaimTemplates)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", d, err)
	}
	return grown, nil
}

// acceptsRest asks the API server by a dry run whether it would accept the change if the claim templates requested what they
// request now.
func (a *applier) acceptsRest(ctx context.Context, d *desired, live *unstructured.Unstructured, grown []volumeGrowth) (bool, error) {
	want, err := d.tree(record.ByApply)
	if err != nil {
		return false, err
	}
	templates, _, err := unstructured.NestedSlice(want, "spec", "volumeClaimTemplates")
	if err != nil {
		return false, fmt.Errorf("claim templates of %s: %w", d, err)
	}
	for _, item := range templates {
		template, _ := item.(map[string]any)
		name, _, _ := unstructured.NestedString(template, "metadata", "name") // one without a name is refused
		i := slices.IndexFunc(grown, func(g volumeGrowth) bool { return g.template == name })
		if i < 0 {
			continue
		}
		if err := unstructured.SetNestedField(template, grown[i].from.String(), "spec", "resources", "requests", "storage"); err != nil {
			return false, fmt.Errorf("claim templates of %s: %w", d, err)
		}
	}
	object := &unstructured.Unstructured{Object: want}
	if err := unstructured.SetNestedSlice(want, templates, "spec", "volumeClaimTemplates"); err != nil {
		return false, fmt.Errorf("claim templates of %s: %w", d, err)
	}
	object.SetGroupVersionKind(d.kind.gvk)
	object.SetUID(live.GetUID())
	object.SetResourceVersion(live.GetResourceVersion())
	body, err := object.MarshalJSON()
	if err != nil {
		return false, fmt.Errorf("%s: %w", d, err)
	}
	_, err = a.applyPatch(ctx, d, body, d.owner.fieldManager, client.DryRunAll)
	switch err = lostRaceAsConflict(err); {
	case isInvalid(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("apply %s: %w", d, withoutValues(err))
	}
	return true, nil
}

var (
	claimKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	podKind   = corev1.SchemeGroupVersion.WithKind("Pod")
)

// growClaims lets all claims of a StatefulSet grow that request less. They are found by the selector, whose labels the
// StatefulSet's controller gives them, and by their names.
func (a *applier) growClaims(ctx context.Context, o *owner, set *appsv1.StatefulSet, grown []volumeGrowth) error {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector of StatefulSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	claims, err := a.listLive(ctx, o, claimKind, set.Namespace, client.MatchingLabelsSelector{Selector: selector})
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
		to, ok := wantedSize(claim.Name, set.Name, grown)
		from := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if !ok || to.Cmp(from) <= 0 || claim.DeletionTimestamp != nil {
			continue
		}
		name := "PersistentVolumeClaim " + client.ObjectKeyFromObject(claim).String()
		if claim.Status.Phase != corev1.ClaimBound {
			unbound = append(unbound, name)
			continue
		}
		if err := a.growClaim(ctx, o, &claims[i], to); err != nil {
			errs = append(errs, fmt.Errorf("expand %s from %s to %s: %w", name, from.String(), to.String(), err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(unbound) > 0 {
		return &WaitingError{reason: reasonClaimNotBound, message: strings.Join(unbound, ", ") + ": a claim can grow when it is bound", after: claimRecheck}
	}
	return nil
}

// growLeftClaims lets the claims grow that an earlier StatefulSet of the same name has left, before the new one is
// created: its controller takes them as they are. Claims that are not bound cannot grow. The StatefulSet is created all
// the same, since its pods may bind them. Without a manager the claims are not read.
func (a *applier) growLeftClaims(ctx context.Context, d *desired) error {
	if !d.options.expandVolumes || a.apiReader == nil {
		return nil
	}
	set, err := asStatefulSet(d.object)
	if err != nil {
		return err
	}
	var all []volumeGrowth
	for _, template := range set.Spec.VolumeClaimTemplates {
		if to, requests := template.Spec.Resources.Requests[corev1.ResourceStorage]; requests {
			all = append(all, volumeGrowth{template: template.Name, to: to})
		}
	}
	err = a.growClaims(ctx, d.owner, set, all)
	if _, unbound := errors.AsType[*WaitingError](err); unbound {
		return nil
	}
	return err
}

// wantedSize returns what a claim has to request at least, if it belongs to a claim template that has to grow.
func wantedSize(claim, set string, grown []volumeGrowth) (resource.Quantity, bool) {
	for _, g := range grown {
		if ordinal, ok := strings.CutPrefix(claim, g.template+"-"+set+"-"); ok && isOrdinal(ordinal) {
			return g.to, true
		}
	}
	return resource.Quantity{}, false
}

func isOrdinal(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

func (a *applier) growClaim(ctx context.Context, o *owner, claim *unstructured.Unstructured, to resource.Quantity) error {
	request := map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": to.String()}}}
	return a.patchLocked(ctx, o, claim, claim, map[string]any{}, request)
}

// replaceStatefulSet deletes a StatefulSet without its pods. The event of its deletion triggers the reconcile that creates it.
func (a *applier) replaceStatefulSet(ctx context.Context, d *desired, set *appsv1.StatefulSet, live client.Object) error {
	value, err := json.Marshal(record.Expansion{Set: d.owner.set, Namespace: set.Namespace, Name: set.Name, Replicas: set.Spec.Replicas})
	if err != nil {
		return err
	}
	key := record.Key(record.ExpansionPrefix, d.owner.namespace, d.object)
	if d.owner.object.GetAnnotations()[key] == string(value) { // an earlier process has written it, and has died since
		err = a.requireCurrent(ctx, d.owner)
	} else {
		err = a.setRecord(ctx, d.owner, key, string(value))
	}
	if err != nil {
		return err
	}
	if err := a.markPods(ctx, d.owner, set, key, string(value)); err != nil {
		return err
	}
	if err := deleteExactly(ctx, d.owner.client, live, metav1.DeletePropagationOrphan); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s without its pods, to replace it by one with larger volumes: %w", d, err)
	}
	a.report(ctx, d.owner, d.kind, live, outcomeRecreated, "")
	a.writes.Forget(d.kind.empty(), d.key())
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is replaced by one with larger volumes; its pods keep running", d)}
}

// keepReplicas gives a new StatefulSet as many replicas as the one that it replaces, unless replicas are desired.
// orphans are the pods that it is going to adopt. Unless the number is 0, one of them has to show it too: the owner's
// annotation alone may be forged.
func (a *applier) keepReplicas(ctx context.Context, d *desired, orphans []unstructured.Unstructured) error {
	if !d.options.expandVolumes || setsReplicas(d.object) {
		return nil
	}
	if err := a.requireCurrent(ctx, d.owner); err != nil { // an older owner may have another annotation, or none
		return err
	}
	key := record.Key(record.ExpansionPrefix, d.owner.namespace, d.object)
	e, value := expansionOf(d.owner, key), d.owner.object.GetAnnotations()[key]
	if e == nil || e.Replicas == nil {
		return nil
	}
	isShown := func(pod unstructured.Unstructured) bool { return pod.GetAnnotations()[key] == value }
	if *e.Replicas == 0 || slices.ContainsFunc(orphans, isShown) {
		d.replicas = e.Replicas
	}
	return nil
}

// setReplicas sets the replicas of a StatefulSet that is sent.
func setReplicas(obj client.Object, replicas int32) {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		obj.Spec.Replicas = &replicas
	case *unstructured.Unstructured:
		if spec, ok := obj.Object["spec"].(map[string]any); ok {
			spec["replicas"] = int64(replicas)
		}
	}
}

// finishExpansion removes the record from the owner when the controller has observed the new StatefulSet, and so has
// adopted its pods. Before that, it takes the marks off the pods, and lets claims grow that the controller has created
// for the replaced StatefulSet in between.
func (a *applier) finishExpansion(ctx context.Context, o *owner, child *declared, live client.Object) error {
	key := record.Key(record.ExpansionPrefix, o.namespace, child.object)
	if !child.options.expandVolumes || o.object.GetAnnotations()[key] == "" || live == nil {
		return nil
	}
	set, err := asStatefulSet(live)
	if err != nil {
		return err
	}
	if set.DeletionTimestamp != nil || set.Status.ObservedGeneration < set.Generation {
		return nil
	}
	var sizes []volumeGrowth
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		sizes = append(sizes, volumeGrowth{template: template.Name, to: template.Spec.Resources.Requests[corev1.ResourceStorage]})
	}
	if err := a.growClaims(ctx, o, set, sizes); err != nil {
		return err
	}
	if err := a.unmarkPods(ctx, o, set); err != nil {
		return err
	}
	return a.setRecord(ctx, o, key, "")
}
