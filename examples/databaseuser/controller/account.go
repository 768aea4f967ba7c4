package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// account is the step that keeps the accounts of a DatabaseUser as specified. Each account is recorded in the status before
// it is created, as pending, and confirmed before it can be used: see [ownership].
type account struct {
	*Operator
	database checkpointed
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
	want, err := desiredFrom(u)
	if err != nil {
		return provisionError(err)
	}
	if u.Spec.Password == nil {
		return reconcile.Wait(reconcile.SecretNotFound, 0, "spec.password is missing: name a Secret and its key")
	}
	version, err := reconcile.SecretVersion(ctx, c, u.Namespace, *u.Spec.Password)
	if err != nil {
		return provisionError(err)
	}
	last, now := a.syncs.last(ctx, u), a.Clock.Now()
	if last.generation == u.Generation && last.version == version && u.Status.PasswordVersion == version && now.Before(last.due) && a.isRecorded(u) {
		return succeeded(last.due.Sub(now)) // not a whole interval: events would put the resync off
	}
	if want.Password, want.version, err = a.password(ctx, c, u); err != nil {
		return provisionError(err)
	}
	before := recordedAccounts(u)
	defer func() { a.claims.keep(u, append(before, recordedAccounts(u)...)) }()
	all, err := a.acquire(ctx, c, u, want)
	if err != nil {
		return provisionError(err)
	}
	record := syncRecord{fingerprints: maps.Clone(last.fingerprints)}
	defer func() { a.syncs.set(u, record) }()
	if err := a.apply(ctx, u, want, all, &record); err != nil {
		return provisionError(err)
	}
	record.generation, record.version, record.due = u.Generation, want.version, a.Clock.Now().Add(a.Resync)
	return succeeded(a.Resync)
}

func (a *account) password(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) (accounts.Password, string, error) {
	value, version, err := reconcile.ReadSecret(ctx, c, u.Namespace, *u.Spec.Password)
	if missing, ok := errors.AsType[*reconcile.SecretError](err); ok {
		if reason, after := missing.Waiting(); reason == reconcile.SecretValueEmpty {
			err = reconcile.Wait(reasonEmpty, after, "%s", missing.Error())
		}
	}
	return accounts.Password(value), version, err
}

// acquire records the specified accounts in the status, and drops the recorded accounts that are no longer specified. It returns
// what it has found of the specified accounts.
func (a *account) acquire(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want desired) ([]found, error) {
	if err := a.claim(ctx, c, u, want.accounts); err != nil {
		return nil, err
	}
	all, err := a.examine(ctx, c, u, want) // first: nothing is dropped if one of them cannot be ours
	if err != nil {
		return nil, err
	}
	if err := a.dropUnwanted(ctx, c, u, want.accounts); err != nil {
		return nil, err
	}
	before := recordedAccounts(u)
	if a.record(u, want, all); slices.ContainsFunc(before, func(m accounts.Account) bool { return !slices.Contains(want.accounts, m) }) {
		return all, a.letGo(ctx, u)
	}
	return all, nil
}

// dropUnwanted drops the recorded accounts that are no longer specified.
func (a *account) dropUnwanted(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want []accounts.Account) error {
	for _, m := range recordedAccounts(u) {
		if slices.Contains(want, m) {
			continue
		}
		if err := a.dropAccount(ctx, c, u, m); err != nil {
			return fmt.Errorf("drop account %s, which is no longer wanted: %w", m, err)
		}
	}
	return nil
}

// found is a specified account as it was found on the server.
type found struct {
	accounts.Account
	state   *accounts.State // nil if the account does not exist
	pending bool            // it is to be created or adopted
}

// examine looks the specified accounts up. It returns an error if one of them must not become ours.
func (a *account) examine(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want desired) (all []found, err error) {
	var acquired []found
	for _, w := range want.accounts {
		state, err := a.database.Lookup(ctx, w)
		if err != nil {
			return nil, err
		}
		f := found{w, state, true}
		ours, err := a.isOurs(ctx, c, u, w, state)
		switch {
		case err != nil:
			return nil, err
		case ours:
			f.pending = state.Mark == markOf(u)
		case state != nil && !u.Spec.Adopt:
			unrecord(u, w)
			return nil, a.accountExists(w)
		case state != nil && state.Locked:
			unrecord(u, w)
			return nil, a.wait(reasonExists, "account %s is locked: it is not taken over, not even by spec.adopt; choose another name, or ask an administrator of the database to unlock it", w)
		default:
			acquired = append(acquired, f)
		}
		all = append(all, f)
	}
	return all, a.judge(ctx, c, u, want.accounts, acquired)
}

func (a *account) accountExists(w accounts.Account) error {
	return a.wait(reasonExists, "account %s exists and was not made for this DatabaseUser: it is left alone; choose another name, or set spec.adopt to take it over", w)
}

// cannotCreate returns a wait for an account that does not exist, although the server answers that it does: it refuses CREATE
// USER if its tables have privileges for the account, or, on MariaDB, an account of this name for the empty host.
func (a *account) cannotCreate(w accounts.Account) error {
	return a.wait(reasonExists, "account %s cannot be created: the server still has privileges for it, which DROP USER removes, or an account of this name for the empty host; "+
		"choose another name, or ask an administrator of the database", w)
}

// release drops the accounts of a DatabaseUser whose label now names another target. Until the status is cleared, the operator
// for that target writes the conditions.
func (a *account) release(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) error {
	target := u.Labels[userv1alpha1.TargetLabel]
	switch err := provisionError(a.dropAccounts(ctx, c, u)); {
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
	if abandoned(u) && len(u.Status.Hosts) > 0 {
		return a.abandon(ctx, u)
	}
	return provisionError(a.dropAccounts(ctx, c, u))
}

// dropAccounts drops the recorded accounts, unless the deletion policy retains them.
func (a *account) dropAccounts(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) error {
	if u.Spec.DeletionPolicy != userv1alpha1.DeletionRetain && a.isRecorded(u) {
		for _, m := range recordedAccounts(u) {
			if err := a.dropAccount(ctx, c, u, m); err != nil {
				return err
			}
		}
	}
	a.syncs.forget(u)
	return nil
}
