package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// account is the step that keeps the accounts of a DatabaseUser as specified. It decides whether this operator has to do with a
// DatabaseUser; the rest is in [Operator.resource].
type account struct {
	*external.Step[*userv1alpha1.DatabaseUser, state]
	*Operator
}

var _ reconcile.FinalizingStep[*userv1alpha1.DatabaseUser] = &account{}

// Reconcile sends no statement unless the spec, the password or the label has changed, or a resync is due.
func (a *account) Reconcile(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) error {
	switch {
	case !a.isTarget(u):
		return a.release(ctx, c, u)
	case u.Status.Target != "" && !a.isRecorded(u):
		return reconcile.Wait(reasonRelease, 0, "the operator for target %q has yet to release the account", u.Status.Target)
	}
	Conditions.Remove(&u.Status.Conditions, "NotReady") // the article's operator sets it
	if _, err := desiredFrom(u); err != nil {
		return provisionError(err)
	}
	if u.Spec.Password == nil {
		return reconcile.Wait(reasonNoSecret, 0, "spec.password is missing: name a Secret and its key")
	}
	err := a.Step.Reconcile(ctx, c, u)
	if !goesOn(err) {
		a.progresses.forget(client.ObjectKeyFromObject(u))
	}
	if claimed, ok := errors.AsType[*external.ClaimedError](err); ok {
		return a.claimed(claimed)
	}
	return err
}

// release drops the accounts of a DatabaseUser whose label now names another target. Until the status is cleared, the operator
// for that target writes the conditions.
func (a *account) release(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) error {
	a.fingerprints.forget(u)
	target := u.Labels[userv1alpha1.TargetLabel]
	switch err := a.Step.Finalize(ctx, c, u); {
	case err != nil && target == "":
		return err
	case err != nil:
		return reconcile.KeepConditions(err)
	}
	u.Status = userv1alpha1.DatabaseUserStatus{
		ObservedGeneration: u.Status.ObservedGeneration, LastHandledReconcileAt: u.Status.LastHandledReconcileAt, Conditions: u.Status.Conditions,
	}
	if target == "" {
		return reconcile.Wait(reasonReleased, 0, "nobody serves this DatabaseUser: it has no label %q", userv1alpha1.TargetLabel)
	}
	return reconcile.Wait(reasonReleased, 0, "target %q has released the account; the operator for %q makes it anew", a.Target, target)
}

// Finalize drops the accounts of a DatabaseUser that is being deleted.
func (a *account) Finalize(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) error {
	a.fingerprints.forget(u)
	a.progresses.forget(client.ObjectKeyFromObject(u))
	if abandoned(u) && len(u.Status.Hosts) > 0 {
		return a.abandon(ctx, u)
	}
	return a.Step.Finalize(ctx, c, u)
}

// Forget drops what is remembered of a DatabaseUser. The reconciler calls it when the object is gone.
func (a *account) Forget(name types.NamespacedName) {
	a.progresses.forget(name)
	a.Step.Forget(name)
}
