package apply

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
)

// RecoverFrom is called after the API server has refused an apply. It tries to write the object in another way, and returns the updated
// object. If no other way helps, the error is the refusal. If the object is deleted to be recreated, the error is a [*owned.WaitingError].
func (a *Applier) RecoverFrom(ctx context.Context, d *owned.Desired, refusal error) (client.Object, error) {
	if !plan.IsInvalid(refusal) {
		return nil, refusal
	}
	live, err := d.ReadTree(ctx) // the object may have another owner by this time, and the cache may not show that yet
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	if err := errors.Join(d.Owner.MayWrite(d, live), feature.CheckGenerated(d, live)); err != nil {
		return nil, err
	}
	d.Admitted = nil // sending the remembered live values did not help
	answer, err := write.Overrule(ctx, d, live, refusal)
	if err != nil || answer != nil {
		return answer, err
	}
	asCreated, _ := write.TryCreation(ctx, d) // without an answer, it is not known what admission changes
	why, err := plan.Examine(d, live, asCreated)
	if err != nil {
		return nil, err
	}
	if answer, err = write.KeepAdmitted(ctx, d, live, why); err != nil || answer != nil {
		return answer, err
	}
	refusal = why.Explain(refusal)
	if d.Options.Recreate {
		return nil, a.recreate(ctx, d, live, refusal)
	}
	return nil, refusal
}

// Refuse handles a refusal that no other write can avoid, because the desired object changes an immutable field. If the child has the
// option Recreate, Refuse deletes the object, so that it is created again. Otherwise it returns the refusal.
func (a *Applier) Refuse(ctx context.Context, d *owned.Desired, refusal error) error {
	refusal = fmt.Errorf("apply %s: %w", d, refusal)
	if !d.Options.Recreate {
		return refusal
	}
	live, err := d.ReadTree(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", d, err)
	}
	if err := d.Owner.MayWrite(d, live); err != nil {
		return err
	}
	return a.recreate(ctx, d, live, refusal)
}

// ReasonRecreating is the reason in conditions while an object is deleted to be created again.
const ReasonRecreating = "Recreating"

// recreate deletes an object because the API server refuses to change it. The event of the deletion triggers the reconcile that creates the
// object again. The refusal does not show whether a field is immutable or a value is wrong. So recreate first tries to create the new
// object under another name, in a dry run.
//
// If this process has already recreated the object for the same change, recreate returns the refusal: another new object would be refused
// too. If another writer puts an object in the place of the new one, recreate deletes that object too, but with growing delays.
func (a *Applier) recreate(ctx context.Context, d *owned.Desired, live client.Object, refusal error) error {
	if a.Recreations.Has(d, live) {
		return fmt.Errorf("recreated once for this change already: %w", refusal)
	}
	if err := a.SlowDownByName(d.Owner, d.Kind, live, memory.Recreation, d.Sum); err != nil {
		return err
	}
	if _, err := write.TryCreation(ctx, d); err != nil {
		return errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", d, err))
	}
	if err := d.Owner.Confirm(ctx); err != nil {
		return err
	}
	if d.Binding != owned.ByReference && (!d.Owner.IsMarkedBy(live, d.Kind.GVK.GroupKind()) || !owned.IsManagedBy(live, d.Owner.FieldManager)) {
		return refusal
	}
	if err := write.DeleteExactly(ctx, d.Owner.Client, live, metav1.DeletePropagationBackground); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s to recreate it: %w", d, err)
	}
	a.Recreations.Begin(d)
	a.CountByName(d.Owner, d.Kind, live, memory.Recreation, d.Sum)
	a.Report(ctx, d.Owner, d.Kind, live, report.OutcomeRecreated, "")
	a.Writes.Forget(live, client.ObjectKeyFromObject(live))
	return owned.NewWaiting(ReasonRecreating, 0, fmt.Sprintf("%s is recreated, since one of its fields cannot be changed", d))
}
