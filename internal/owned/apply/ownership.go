package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/record"
)

// deleteOrphan deletes an orphan (an object of a former owner, which had the same name) if the garbage collector has not deleted it in
// time, and if it has no other owner. The event of the deletion triggers the reconcile that creates our object. deleteOrphan always returns
// an error: if nothing failed, a [*owned.WaitingError].
func (a *Applier) deleteOrphan(ctx context.Context, d *owned.Desired, live client.Object, orphan owned.OrphanError) error {
	now := a.Clock.Now()
	deadline := a.Children.OrphanSince(live.GetUID(), now).Add(owned.GarbageCollectorDelay)
	if left := deadline.Sub(now); left > 0 {
		return owned.WithDelay(orphan.WaitingError, left)
	}
	wait := owned.WithDelay(orphan.WaitingError, owned.GarbageCollectorDelay)
	if len(live.GetOwnerReferences()) != 1 || live.GetDeletionTimestamp() != nil {
		return wait
	}
	// The cache may be behind: perhaps our owner is deleted, and the controller that the orphan names is the present owner of this name.
	switch current, err := d.Owner.ReadOwner(ctx); {
	case err != nil:
		return err
	case current == nil || current.GetUID() != d.Owner.Reference.UID:
		return wait
	}
	if err := write.DeleteExactly(ctx, d.Owner.Client, live, metav1.DeletePropagationBackground); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s, whose owner is gone: %w", d, err)
	}
	a.Report(ctx, d.Owner, d.Kind, live, report.OutcomeDeleted, "its owner is gone")
	return wait
}

// RemoveMarked deletes an object that has a mark (annotations that name its owner) and no owner reference. Call it after the owner was
// found not to need the object. It reads the object from the API server, because the cache may be configured to drop managed fields. If the
// object has lost its mark, or our field manager has never written it, RemoveMarked deletes nothing and returns false.
func (a *Applier) RemoveMarked(ctx context.Context, o *owned.Owner, k *owned.Kind, obj client.Object) (ours bool, err error) {
	before, marked := record.MarkOf(obj, k.GVK.GroupKind())
	live, err := o.ReadMetadata(ctx, k, client.ObjectKeyFromObject(obj))
	switch {
	case err != nil:
		return false, err
	case live == nil || live.GetUID() != obj.GetUID():
		return true, nil // this object is gone, and the cache does not show that yet
	case live.GetDeletionTimestamp() != nil:
		return true, nil
	}
	now, still := record.MarkOf(live, k.GVK.GroupKind())
	switch {
	case !marked || !still || !owned.IsManagedBy(live, o.FieldManager):
		log.FromContext(ctx).Info("An object is not deleted, although it looks like one of ours: another field manager made it, or its mark is gone",
			"kind", k.GVK.Kind, "object", client.ObjectKeyFromObject(obj))
		return false, nil
	case now != before:
		return true, apierrors.NewConflict(schema.GroupResource{Group: k.GVK.Group, Resource: k.GVK.Kind}, obj.GetName(),
			errors.New("its mark has changed, and the cache does not show that yet"))
	}
	target := k.Empty()
	target.SetNamespace(live.GetNamespace())
	target.SetName(live.GetName())
	target.SetUID(live.GetUID())
	target.SetResourceVersion(live.GetResourceVersion())
	err = write.DeleteExactly(ctx, o.Client, target, metav1.DeletePropagationBackground)
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete %s: %w", k.Describe(obj), err)
	}
	if err == nil {
		a.CountByName(o, k, obj, memory.Deletion, owned.Sum{})
		a.Report(ctx, o, k, obj, report.OutcomeDeleted, "")
	}
	return true, nil
}

// Unreference replaces the owner reference of a live object by a mark (annotations that name the owner), in one patch with the resource
// version as precondition. It returns the updated live object.
//
// An apply would not suffice: if another field manager has written the reference too, the reference would stay.
func (a *Applier) Unreference(ctx context.Context, o *owned.Owner, k *owned.Kind, live client.Object, b owned.Binding) (client.Object, error) {
	return a.rebind(ctx, o, k, live, b, o.Reference.UID)
}

// rebind removes the reference to the owner with the UID former from a live object, and sets the reference to our owner, or the mark
// (annotations that name the owner). See Unreference.
func (a *Applier) rebind(ctx context.Context, o *owned.Owner, k *owned.Kind, live client.Object, b owned.Binding, former types.UID) (client.Object, error) {
	annotations, labels := map[string]any{}, map[string]any{}
	references := owned.WithoutReferenceTo(live, former)
	if b == owned.ByReference {
		references = append(references, o.Reference)
	} else {
		hidden := live.DeepCopyObject().(client.Object)
		o.HideFromApplications(k.GVK.GroupKind(), hidden)
		labels[record.OwnerUID] = string(o.Reference.UID)
		addChanges(labels, live.GetLabels(), hidden.GetLabels())
		addChanges(annotations, live.GetAnnotations(), hidden.GetAnnotations())
		addChanges(annotations, nil, o.MarkFor(b).Annotations(record.NameOf(k.GVK.GroupKind(), live)))
	}
	if references == nil {
		references = []metav1.OwnerReference{}
	}
	if last := record.LastAppliedOf(live); last.Method != record.ByOthers {
		last.Method = record.ByCreate // by this record, the next apply first moves the ownership of the fields of this patch to our server-side apply
		annotations[record.Applied] = last.String()
	}
	metadata := map[string]any{"annotations": annotations, "labels": labels, "ownerReferences": references}
	answer := k.Empty()
	if err := write.PatchLocked(ctx, o, live, answer, metadata, nil); err != nil {
		return nil, fmt.Errorf("replace the owner reference of %s: %w", k.Describe(live), err)
	}
	a.Writes.Record(answer)
	return answer, nil
}

// addChanges adds the differences between two maps to a JSON merge patch.
func addChanges(patch map[string]any, before, after map[string]string) {
	for key, value := range after {
		if old, is := before[key]; !is || old != value {
			patch[key] = value
		}
	}
	for key := range before {
		if _, is := after[key]; !is {
			patch[key] = nil
		}
	}
}
