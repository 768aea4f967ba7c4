package write

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

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/record"
)

// While [ownedresources.Child.ExpandVolumes] replaces a StatefulSet, its pods have no controller. Annotations on each pod name the owner,
// and only they prove that the pod belonged to the owner. The owner's own annotation proves nothing: whoever may write the owner could name
// the pods of somebody else in it.

// MarkPods writes annotations that name the owner on the pods of a StatefulSet, before the StatefulSet is deleted without its pods. A pod
// that the StatefulSet's controller creates later has no such annotations. If the StatefulSet is then not created again, such a pod stays.
func MarkPods(ctx context.Context, o *owned.Owner, set *appsv1.StatefulSet, key, value string) error {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector of StatefulSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	pods, err := o.ListLive(ctx, feature.PodKind, set.Namespace, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, set) || pod.GetDeletionTimestamp() != nil || o.IsMarkedBy(pod, feature.PodKind.GroupKind()) && pod.GetAnnotations()[key] == value {
			continue
		}
		marks := o.MarkFor(owned.ByMark).Annotations(record.NameOf(feature.PodKind.GroupKind(), pod))
		marks[key] = value
		if err := patchMarks(ctx, o, pod, o.Reference.UID, asAny(marks)); err != nil {
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

// unmarkPods removes the annotations that name the owner from the pods that a new StatefulSet has adopted.
func unmarkPods(ctx context.Context, o *owned.Owner, set *appsv1.StatefulSet) error {
	pods, key, err := markedPods(ctx, o, set)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := patchMarks(ctx, o, &pods[i], nil, map[string]any{record.Owner: nil, record.Object: nil, key: nil}); err != nil {
			return err
		}
	}
	return nil
}

func patchMarks(ctx context.Context, o *owned.Owner, pod *unstructured.Unstructured, label any, annotations map[string]any) error {
	marks := map[string]any{"labels": map[string]any{record.OwnerUID: label}, "annotations": annotations}
	if err := PatchLocked(ctx, o, pod, pod, marks, nil); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("mark Pod %s, whose StatefulSet is replaced: %w", client.ObjectKeyFromObject(pod), err)
	}
	return nil
}

// markedPods returns the live pods whose annotations name this owner and this StatefulSet. key is the key of the annotation that names the
// StatefulSet.
func markedPods(ctx context.Context, o *owned.Owner, set client.Object) (pods []unstructured.Unstructured, key string, err error) {
	key = record.Key(record.ExpansionPrefix, o.Namespace, set)
	pods, err = o.ListLive(ctx, feature.PodKind, set.GetNamespace(), client.MatchingLabels{record.OwnerUID: string(o.Reference.UID)})
	return slices.DeleteFunc(pods, func(pod unstructured.Unstructured) bool {
		e := record.ParseExpansion(pod.GetAnnotations()[key])
		ordinal, named := strings.CutPrefix(pod.GetName(), set.GetName()+"-")
		return !o.IsMarkedBy(&pod, feature.PodKind.GroupKind()) || e == nil || !o.IsSet(e.Set) || e.Namespace != set.GetNamespace() || e.Name != set.GetName() ||
			!named || !feature.IsOrdinal(ordinal)
	}), key, err
}

// OrphanedPods returns the pods of the StatefulSet that the object replaces. If the owner's annotation names no such StatefulSet, it sends
// no request.
func OrphanedPods(ctx context.Context, d *owned.Desired) ([]unstructured.Unstructured, error) {
	if !d.Options.ExpandVolumes || feature.ExpansionOf(d.Owner, record.Key(record.ExpansionPrefix, d.Owner.Namespace, d.Object)) == nil {
		return nil, nil
	}
	pods, _, err := markedPods(ctx, d.Owner, d.Object)
	return slices.DeleteFunc(pods, func(pod unstructured.Unstructured) bool { return metav1.GetControllerOfNoCopy(&pod) != nil }), err
}

// DeleteOrphanedPods deletes the pods of a StatefulSet that was deleted in order to be replaced, and that is not desired any more.
func DeleteOrphanedPods(ctx context.Context, o *owned.Owner, e *record.Expansion) error {
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
	if err := o.LiveReader().Get(ctx, name, set); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read StatefulSet %s: %w", name, err)
	}
	orphaning := slices.Contains(set.GetFinalizers(), metav1.FinalizerOrphanDependents)
	pods, _, err := markedPods(ctx, o, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}})
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		switch controller := metav1.GetControllerOfNoCopy(pod); {
		case controller != nil && orphaning && controller.UID == set.GetUID():
			return owned.NewWaiting(owned.ReasonTerminating, 0, fmt.Sprintf("StatefulSet %s is being deleted", name))
		case controller != nil, pod.GetDeletionTimestamp() != nil:
			continue
		}
		uid := pod.GetUID()
		if err := o.Client.Delete(ctx, pod, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Pod %s/%s, whose StatefulSet was deleted to be replaced: %w", e.Namespace, pod.GetName(), err)
		}
	}
	return nil
}
