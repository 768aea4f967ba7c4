package write

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/record"
)

// Reclaim is called after an apply. If the managed fields of the object had been cleared, it makes sure that later applies can again remove
// the fields that are ours. before is the live object before the apply, and answer is the API server's answer to the apply.
//
// If the apply has sent the same as the write before it, our fields are the fields that it sent. Otherwise it is not known which other live
// fields were ours. So all fields that are not desired are removed, except fields that certainly belong to others: owner references,
// finalizers, labels and annotations of Kubernetes itself, replicas that an autoscaler sets, and fields that another manager owns.
//
// One patch removes our fields from the managed fields entry of before-first-apply, and removes the other fields. The live resource version
// is a precondition. If the patch fails, or the process ends before it, the entry stays, and the next reconcile sends the patch: see
// [plan.IsReclaimable].
func Reclaim(ctx context.Context, d *owned.Desired, last record.LastApplied, before, answer client.Object) (client.Object, error) {
	lost := plan.IsLost(d, last, before)
	if !lost && !plan.IsReclaimable(d, answer) {
		return answer, nil
	}
	dropped, err := plan.HasDropped(d, last, answer)
	if err != nil || lost && !dropped {
		return answer, err
	}
	for range MaxAttempts { // a controller may write the object in between
		live, readErr := d.ReadTree(ctx)
		if readErr != nil {
			return nil, fmt.Errorf("read %s: %w", d, readErr)
		}
		if err := d.Owner.MayWrite(d, live); err != nil {
			return nil, err
		}
		if plan.OurEntry(d, live) < 0 || !lost && !plan.IsReclaimable(d, live) {
			return answer, nil
		}
		var reclaimed client.Object
		if reclaimed, err = reclaimFrom(ctx, d, live, dropped, true); plan.IsInvalid(err) && dropped {
			reclaimed, err = reclaimFrom(ctx, d, live, dropped, false) // the API server does not allow removing a field of the spec
		}
		if !apierrors.IsConflict(err) {
			return reclaimed, err
		}
	}
	return nil, err
}

// reclaimFrom removes our fields from the managed fields entry of before-first-apply. If dropped is true, it also removes the fields that
// are not desired from the live object.
func reclaimFrom(ctx context.Context, d *owned.Desired, live *unstructured.Unstructured, dropped, withSpec bool) (client.Object, error) {
	formerSet, owned, err := plan.FormerFields(d, live)
	if err != nil {
		return nil, err
	}
	tree := live.Object
	if dropped {
		removed, err := plan.Removable(d, formerSet, owned, withSpec)
		if err != nil {
			return nil, err
		}
		if tree, err = plan.Without(d, tree, removed); err != nil {
			return nil, err
		}
		formerSet = formerSet.Difference(removed)
	}
	entries := live.GetManagedFields()
	if former := plan.FormerEntry(live); former >= 0 {
		entries[former].Manager = plan.FoundBefore
		if entries[former].FieldsV1, err = plan.FieldsV1Of(formerSet); err != nil {
			return nil, fmt.Errorf("managed fields of %s: %w", d, err)
		}
	}
	patch, err := plan.ReplacePatch(d, live, tree, entries, record.ByApply)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	return replace(ctx, d, patch)
}
