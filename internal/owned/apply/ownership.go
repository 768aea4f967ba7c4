package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/record"
)

// deleteOrphan deletes an orphan that the garbage collector has not deleted in time, if no other owner keeps it. The event
// of its deletion triggers the reconcile that creates our object. It always returns an error, which is a [owned.WaitingError] if
// nothing failed.
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
	// The cache may be behind: perhaps our owner is the one that was deleted, and its namesake lives.
	switch current, err := d.Owner.ReadOwner(ctx); {
	case err != nil:
		return err
	case current == nil || current.GetUID() != d.Owner.Reference.UID:
		return wait
	}
	if err := owned.DeleteExactly(ctx, d.Owner.Client, live, metav1.DeletePropagationBackground); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s, whose owner is gone: %w", d, err)
	}
	a.Report(ctx, d.Owner, d.Kind, live, report.OutcomeDeleted, "its owner is gone")
	return wait
}

// RemoveMarked deletes an object that has no owner reference, after its owner was found not to need it. It reads the
// object from the API server: the cache may be configured to drop managed fields. It returns false, and deletes nothing,
// if the object is not ours: its mark is gone, or our field manager has never written it.
func (a *Applier) RemoveMarked(ctx context.Context, o *owned.Owner, k *owned.Kind, obj client.Object) (ours bool, err error) {
	before, marked := record.MarkOf(obj, k.GVK.GroupKind())
	live, err := o.ReadMetadata(ctx, k, client.ObjectKeyFromObject(obj))
	switch {
	case err != nil:
		return false, err
	case live == nil || live.GetUID() != obj.GetUID():
		return true, nil // gone: the cache does not show it yet
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
	err = owned.DeleteExactly(ctx, o.Client, target, metav1.DeletePropagationBackground)
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete %s: %w", k.Describe(obj), err)
	}
	if err == nil {
		a.CountByName(o, k, obj, memory.Deletion, owned.Sum{})
		a.Report(ctx, o, k, obj, report.OutcomeDeleted, "")
	}
	return true, nil
}

// Unreference takes the owner reference off a live object, and sets the mark, in one patch. The resource version is a
// precondition. It returns the updated live object.
//
// An apply cannot do it: a reference that another field manager has written too would stay.
func (a *Applier) Unreference(ctx context.Context, o *owned.Owner, k *owned.Kind, live client.Object, b owned.Binding) (client.Object, error) {
	annotations := o.MarkFor(b).Annotations(record.NameOf(k.GVK.GroupKind(), live))
	if last := record.LastAppliedOf(live); last.Method != record.ByOthers {
		last.Method = record.ByCreate // the fields of this patch have to be migrated before the next apply
		annotations[record.Applied] = last.String()
	}
	references := owned.WithoutReferenceTo(live, o.Reference.UID)
	if references == nil {
		references = []metav1.OwnerReference{}
	}
	answer := k.Empty()
	if err := o.PatchLocked(ctx, live, answer, map[string]any{
		"ownerReferences": references, "annotations": annotations, "labels": map[string]string{record.OwnerUID: string(o.Reference.UID)},
	}, nil); err != nil {
		return nil, fmt.Errorf("take the owner reference off %s: %w", k.Describe(live), err)
	}
	a.Writes.Record(answer)
	return answer, nil
}
