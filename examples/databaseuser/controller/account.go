package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// account is the step that keeps the accounts of a DatabaseUser. What it makes is recorded in the status before: an
// account that the status tells of is ours, whatever happened since.
type account struct {
	*Operator
	cache client.Reader
}

var _ reconcile.Cleaner[*userv1alpha1.DatabaseUser] = &account{}

// Reconcile makes no statement unless the spec, the password or the label has changed, or a resync is due.
func (a *account) Reconcile(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) error {
	switch {
	case !a.wanted(u):
		return a.release(ctx, u)
	case u.Status.Target != "" && !a.made(u):
		return reconcile.Wait(reasonRelease, 0, "the operator for target %q has yet to release the account", u.Status.Target)
	}
	Conditions.Remove(&u.Status.Conditions, "NotReady") // which an earlier operator left
	want, err := desire(u)
	if err != nil {
		return failed(err)
	}
	if u.Spec.Password == nil {
		return failed(&accounts.InvalidError{What: "spec.password", Why: "is missing: name a Secret and its key"})
	}
	version, err := reconcile.SecretVersion(ctx, c, u.Namespace, *u.Spec.Password)
	if err != nil {
		return failed(err)
	}
	last := a.checked.get(u)
	if last.generation == u.Generation && last.version == version && a.Clock.Now().Before(last.due) && a.made(u) {
		return a.done()
	}
	password, version, err := a.password(ctx, c, u)
	if err != nil {
		return failed(err)
	}
	if err := a.take(ctx, u, want); err != nil {
		return failed(err)
	}
	fingerprints, err := a.keep(ctx, u, want, password, u.Status.PasswordVersion != version, last.fingerprints)
	if err != nil {
		return failed(err)
	}
	u.Status.PasswordVersion = version
	a.checked.set(u, check{u.Generation, version, a.Clock.Now().Add(a.Resync), fingerprints})
	return a.done()
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

// take makes the accounts that are wanted ours, and lets go of those that are not wanted any more.
func (a *account) take(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired) error {
	switch other, err := a.claim(ctx, u, want.accounts); {
	case err != nil:
		return err
	case other != nil:
		return a.wait(reasonClaimed, "DatabaseUser %s has the better claim to the account", other)
	}
	for _, w := range want.accounts { // before anything is dropped for them
		if has(u, w) && a.made(u) {
			continue
		}
		state, err := a.Database.Lookup(ctx, w)
		switch {
		case err != nil:
			return err
		case state != nil && !u.Spec.Adopt:
			return a.wait(reasonExists, "account %s exists and was not made for this DatabaseUser: it is left alone; choose another name, or set spec.adopt to take it over", w)
		}
	}
	for _, m := range made(u) {
		if slices.Contains(want.accounts, m) {
			continue
		}
		if err := a.Database.Drop(ctx, m); err != nil {
			return fmt.Errorf("drop account %s, which is no longer wanted: %w", m, err)
		}
	}
	if u.Status.User != u.Spec.User {
		recordGrants(u, nil) // they went with the accounts
	}
	if !slices.Equal(made(u), want.accounts) {
		u.Status.PasswordVersion = "" // the new ones have none yet
	}
	u.Status.Target, u.Status.User, u.Status.Hosts = a.Target, u.Spec.User, nil
	for _, w := range want.accounts {
		u.Status.Hosts = append(u.Status.Hosts, w.Host)
	}
	recordGrants(u, accounts.Normalize(append(granted(u), want.grants...)))
	return reconcile.Checkpoint(ctx)
}

// keep makes the accounts as they should be, and gives what the server stored for their passwords.
func (a *account) keep(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, password accounts.Password, changed bool, known map[string]accounts.Fingerprint) (map[string]accounts.Fingerprint, error) {
	fingerprints := maps.Clone(known)
	if fingerprints == nil {
		fingerprints = map[string]accounts.Fingerprint{}
	}
	revoke := accounts.Subtract(granted(u), want.grants)
	var errs []error
	for _, w := range want.accounts {
		state, err := a.Database.Lookup(ctx, w)
		fingerprint, stored := fingerprints[w.Host]
		switch {
		case err != nil:
			return nil, err
		case state == nil:
			err = a.Database.Create(ctx, w, password, want.settings)
		case changed || stored && fingerprint != state.Fingerprint:
			err = a.Database.SetPassword(ctx, w, password)
		}
		if err != nil {
			return nil, err
		}
		if state != nil && state.Settings != normal(want.settings) {
			if err := a.Database.SetSettings(ctx, w, want.settings); err != nil {
				return nil, err
			}
		}
		after, err := a.Database.Lookup(ctx, w)
		if err != nil || after == nil {
			return nil, cmp.Or(err, fmt.Errorf("account %s was dropped by somebody else just now", w))
		}
		fingerprints[w.Host] = after.Fingerprint
		for _, g := range revoke {
			errs = append(errs, in("revoke "+g.String(), a.Database.Revoke(ctx, w, g)))
		}
		for _, g := range after.Missing(want.grants) {
			errs = append(errs, in("grant "+g.String(), a.Database.Grant(ctx, w, g)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	recordGrants(u, want.grants)
	return fingerprints, nil
}

func normal(s accounts.Settings) accounts.Settings {
	s.Require = cmp.Or(s.Require, accounts.RequireNone)
	return s
}

// release gives up the account of a DatabaseUser that has another label now. The operator that it names tells of it
// meanwhile.
func (a *account) release(ctx context.Context, u *userv1alpha1.DatabaseUser) error {
	if err := a.drop(ctx, u); err != nil {
		return reconcile.Unshown(err)
	}
	target := u.Labels[userv1alpha1.TargetLabel]
	u.Status = userv1alpha1.DatabaseUserStatus{ObservedGeneration: u.Status.ObservedGeneration, Conditions: u.Status.Conditions}
	if target == "" {
		return reconcile.Wait(reasonReleased, 0, "nobody serves this DatabaseUser: it has no label %q", userv1alpha1.TargetLabel)
	}
	return reconcile.Wait(reasonReleased, 0, "target %q has released the account; the operator for %q makes it anew", a.Target, target)
}

// Finalize drops the accounts of a DatabaseUser that is being deleted.
func (a *account) Finalize(ctx context.Context, _ client.Client, u *userv1alpha1.DatabaseUser) error {
	if u.Annotations[AbandonAnnotation] == "true" && len(u.Status.Hosts) > 0 {
		a.checked.forget(u)
		if a.recorder != nil {
			a.recorder.Eventf(u, nil, corev1.EventTypeWarning, "Abandoned", "Finalize", "account %s may still be there", u.Status.User)
		}
		return nil
	}
	return failed(a.drop(ctx, u))
}

// drop drops what was made, unless it is to be retained.
func (a *account) drop(ctx context.Context, u *userv1alpha1.DatabaseUser) error {
	if u.Spec.DeletionPolicy != userv1alpha1.DeletionRetain && a.made(u) {
		for _, m := range made(u) {
			if err := a.Database.Drop(ctx, m); err != nil {
				return err
			}
		}
	}
	a.checked.forget(u)
	return nil
}
