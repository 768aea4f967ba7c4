package ownedresources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// While [ExpandVolumes] replaces a StatefulSet, its pods have no controller. The mark on each pod is the only proof
// that it was a pod of the owner. The record on the owner is not a proof: whoever may write the owner could name the
// pods of somebody else.

// markPods marks the pods of a StatefulSet before it is deleted without them. A pod that the StatefulSet's controller
// creates after that carries no mark. If the StatefulSet is then not created again, such a pod stays.
func (a *applier) markPods(ctx context.Context, o *owner, set *appsv1.StatefulSet, key, value string) error {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector of StatefulSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	pods, err := a.listLive(ctx, o, podKind, set.Namespace, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, set) || pod.GetDeletionTimestamp() != nil || o.isMarkedBy(pod, podKind.GroupKind()) && pod.GetAnnotations()[key] == value {
			continue
		}
		marks := o.markFor(byMark).Annotations(record.NameOf(podKind.GroupKind(), pod))
		marks[key] = value
		if err := a.patchMarks(ctx, o, pod, o.reference.UID, asAny(marks)); err != nil {
			return err
		}
	}
	return nil
}

func asAny(marks map[string]string) map[string]any {
	all := make(map[string]any, len(marks))
	for key, value := range marks {
		all[key] = value
	}
	return all
}

// unmarkPods takes the marks off the pods that a new StatefulSet has adopted.
func (a *applier) unmarkPods(ctx context.Context, o *owner, set *appsv1.StatefulSet) error {
	pods, key, err := a.markedPods(ctx, o, set)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := a.patchMarks(ctx, o, &pods[i], nil, map[string]any{record.Owner: nil, record.Object: nil, key: nil}); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) patchMarks(ctx context.Context, o *owner, pod *unstructured.Unstructured, label any, annotations map[string]any) error {
	marks := map[string]any{"labels": map[string]any{record.OwnerUID: label}, "annotations": annotations}
	if err := a.patchLocked(ctx, o, pod, pod, marks, nil); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("mark Pod %s, whose StatefulSet is replaced: %w", client.ObjectKeyFromObject(pod), err)
	}
	return nil
}

// markedPods returns the live pods that carry the owner's mark and a record that names the StatefulSet, and the key of
// that record.
func (a *applier) markedPods(ctx context.Context, o *owner, set client.Object) (pods []unstructured.Unstructured, key string, err error) {
	key = record.Key(record.ExpansionPrefix, o.namespace, set)
	pods, err = a.listLive(ctx, o, podKind, set.GetNamespace(), client.MatchingLabels{record.OwnerUID: string(o.reference.UID)})
	return slices.DeleteFunc(pods, func(pod unstructured.Unstructured) bool {
		e := record.ParseExpansion(pod.GetAnnotations()[key])
		ordinal, named := strings.CutPrefix(pod.GetName(), set.GetName()+"-")
		return !o.isMarkedBy(&pod, podKind.GroupKind()) || e == nil || !o.isSet(e.Set) || e.Namespace != set.GetNamespace() || e.Name != set.GetName() ||
			!named || !isOrdinal(ordinal)
	}), key, err
}

// orphanedPods returns the pods of the StatefulSet that the object replaces. It sends no request if the owner names none.
func (a *applier) orphanedPods(ctx context.Context, d *desired) ([]unstructured.Unstructured, error) {
	if !d.options.expandVolumes || expansionOf(d.owner, record.Key(record.ExpansionPrefix, d.owner.namespace, d.object)) == nil {
		return nil, nil
	}
	pods, _, err := a.markedPods(ctx, d.owner, d.object)
	return slices.DeleteFunc(pods, func(pod unstructured.Unstructured) bool { return metav1.GetControllerOfNoCopy(&pod) != nil }), err
}

// abandonExpansions deletes the pods of StatefulSets that this set deleted to replace them, and that are not desired
// any more. The records on the owner name these StatefulSets. It waits until the garbage collector has orphaned the
// pods.
func (s *set) abandonExpansions(ctx context.Context, o *owner, desired map[string]bool) error {
	if !slices.ContainsFunc(s.children, func(c *child) bool { return c.options.expandVolumes }) {
		return nil
	}
	for key := range o.object.GetAnnotations() {
		if !strings.HasPrefix(key, record.ExpansionPrefix) || desired[key] {
			continue
		}
		e := expansionOf(o, key)
		if e == nil || !o.isSet(e.Set) {
			continue
		}
		if err := s.applier.requireCurrent(ctx, o); err != nil {
			return err
		}
		if err := s.applier.deleteOrphanedPods(ctx, o, e); err != nil {
			return err
		}
		if o.object.GetDeletionTimestamp() == nil {
			return s.applier.setRecord(ctx, o, key, "") // which triggers the next reconcile, if there are more
		}
	}
	return nil
}

func (a *applier) deleteOrphanedPods(ctx context.Context, o *owner, e *record.Expansion) error {
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
	if err := a.liveReader(o).Get(ctx, name, set); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read StatefulSet %s: %w", name, err)
	}
	orphaning := slices.Contains(set.GetFinalizers(), metav1.FinalizerOrphanDependents)
	pods, _, err := a.markedPods(ctx, o, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}})
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		switch controller := metav1.GetControllerOfNoCopy(pod); {
		case controller != nil && orphaning && controller.UID == set.GetUID():
			return &WaitingError{reason: reasonTerminating, message: fmt.Sprintf("StatefulSet %s is being deleted", name)}
		case controller != nil, pod.GetDeletionTimestamp() != nil:
			continue
		}
		uid := pod.GetUID()
		if err := o.client.Delete(ctx, pod, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Pod %s/%s, whose StatefulSet was deleted to be replaced: %w", e.Namespace, pod.GetName(), err)
		}
	}
	return nil
}
