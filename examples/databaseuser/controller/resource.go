package controller

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// longest limits one call, such as all statements that change one account. The database limits each statement to less.
const longest = 10 * time.Minute

// state is an account as it was found on the server, or what is desired of all accounts of a DatabaseUser.
type state struct {
	*accounts.State
	account         accounts.Account
	isMarked        bool // it was created for the DatabaseUser
	passwordChanged bool // somebody has changed the password since the last pass

	*desired // for a desired state only
}

// resource returns how the accounts of a DatabaseUser are kept as specified.
func (o *Operator) resource() external.Resource[*userv1alpha1.DatabaseUser, state] {
	return external.Resource[*userv1alpha1.DatabaseUser, state]{
		Record: o.record, Save: o.save, Keys: o.keys, Group: userOf, Others: o.others,
		Observe: o.observe, Desired: o.desired, Differs: differs,
		Create: o.create, Update: o.update, Delete: o.drop, DeletesAtOnce: true,
		Version: passwordVersion, IsOurs: o.isOurs, MarksOnlyPending: true, Adopt: o.adopt, Admit: o.admit, Ready: o.ready,
		Retain: func(u *userv1alpha1.DatabaseUser) bool {
			return u.Spec.DeletionPolicy == userv1alpha1.DeletionRetain && (u.DeletionTimestamp != nil || !o.isTarget(u))
		},
		Recreate: true, // the status has room for one user name
		Succeeded: func(*userv1alpha1.DatabaseUser) (reason, message string) {
			return reasonSucceeded, "The user provisioning has succeeded."
		},
		Every: o.Resync, Timeout: longest, Clock: o.Clock,
	}
}

func passwordVersion(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) (string, error) {
	version, err := secrets.Version(ctx, c, u.Namespace, *u.Spec.Password)
	return version, provisionError(err)
}

func readPassword(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) (accounts.Password, string, error) {
	value, version, err := secrets.Read(ctx, c, u.Namespace, *u.Spec.Password)
	if missing, ok := errors.AsType[*secrets.Error](err); ok {
		if reason, after := missing.Waiting(); reason == reasonNoValue {
			err = reconcile.Wait(reasonEmpty, after, "%s", missing.Error())
		}
	}
	return accounts.Password(value), version, err
}

func (o *Operator) desired(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) (state, error) {
	want, _ := desiredFrom(u) // the step has looked at the error
	var err error
	want.password, want.version, err = readPassword(ctx, c, u)
	if u.Status.User == u.Spec.User {
		want.granted = recordedGrants(u)
	}
	want.progress = o.progresses.of(u)
	return state{desired: &want}, provisionError(err)
}

func (o *Operator) observe(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, ref external.Reference) (state, error) {
	s := state{account: accountOf(ref.Key)}
	var err error
	s.State, err = o.Database.Lookup(ctx, s.account)
	switch {
	case err != nil:
		return s, provisionError(err)
	case s.State == nil:
		return s, external.ErrNotFound
	}
	s.passwordChanged = o.fingerprints.isChanged(u, s.account, s.Fingerprint)
	s.isMarked, err = isMarked(ctx, c, u, s.State)
	return s, provisionError(err)
}

func differs(_ external.Reference, s, want state) bool {
	return s.passwordChanged || s.Fingerprint.Differs(want.password) || s.Settings != want.settings ||
		len(s.Surplus(want.granted, want.grants)) > 0 || len(s.Missing(want.grants)) > 0
}

// create creates an account, with our mark.
func (o *Operator) create(ctx context.Context, _ client.Client, u *userv1alpha1.DatabaseUser, ref external.Reference, want state) (string, error) {
	w, marked := accountOf(ref.Key), want.settings
	marked.Mark = markOf(u)
	err := o.Database.Create(ctx, w, want.password, marked)
	if !errors.Is(err, accounts.ErrExists) {
		return "", provisionError(err)
	}
	switch found, err := o.Database.Lookup(ctx, w); {
	case err != nil:
		return "", provisionError(err)
	case found == nil: // it stays recorded: without that, each pass would write the status twice
		return "", o.cannotCreate(w)
	}
	return "", external.ErrExists
}

// update changes the password if it may be another one, then the settings, which takes off the mark, then the grants.
func (o *Operator) update(ctx context.Context, _ client.Client, u *userv1alpha1.DatabaseUser, _ external.Reference, s, want state) error {
	isSet := want.progress.passwords[s.account] == want.version && !s.Fingerprint.Differs(want.password)
	if !isSet && (u.Status.PasswordVersion != want.version || s.passwordChanged || s.Fingerprint.Differs(want.password)) {
		if err := o.Database.SetPassword(ctx, s.account, want.password); err != nil {
			return provisionError(err)
		}
		want.progress.passwords[s.account] = want.version
	}
	if s.Settings != want.settings {
		if err := o.Database.SetSettings(ctx, s.account, want.settings); err != nil {
			return provisionError(err)
		}
	}
	return provisionError(o.applyGrants(ctx, u, s, want))
}

// applyGrants revokes and grants all that it can, until the turn of the pass is over. What the server refuses is kept in want, for
// [Operator.ready]. It stops at any other error: each further statement would meet the same error, after a request of its own.
func (o *Operator) applyGrants(ctx context.Context, u *userv1alpha1.DatabaseUser, s, want state) error {
	setRecordedGrants(u, append(recordedGrants(u), want.grants...))
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	for _, g := range s.Surplus(want.granted, want.grants) {
		done, err := want.progress.try(ctx, statement{s.account, "revoke " + g.String()}, func() error { return o.Database.Revoke(ctx, s.account, g) })
		if err != nil {
			return err
		}
		if !done {
			want.progress.kept = append(want.progress.kept, g)
		}
	}
	for _, g := range s.Missing(want.grants) {
		if _, err := want.progress.try(ctx, statement{s.account, "grant " + g.String()}, func() error { return o.Database.Grant(ctx, s.account, g) }); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) drop(ctx context.Context, _ client.Client, u *userv1alpha1.DatabaseUser, ref external.Reference) error {
	o.fingerprints.forget(u) // the others are remembered again at the end of the pass
	return provisionError(o.Database.Drop(ctx, accountOf(ref.Key)))
}

// ready returns what the server has refused, and a wait for an account that somebody has locked or whose password has expired. The operator does not
// unlock it, and does not set the same password anew: an administrator has shut the account on purpose, or has a rule for how long a password lives.
func (o *Operator) ready(u *userv1alpha1.DatabaseUser, s, want state) error {
	o.fingerprints.set(u, s.account, s.Fingerprint)
	// Also if some were refused: else a spec that changes often makes the record longer and longer.
	setRecordedGrants(u, append(want.progress.kept, want.grants...))
	if err := errors.Join(want.progress.errs...); err != nil {
		return provisionError(err)
	}
	if s.Expired {
		return o.wait(reasonExpired, "the password of account %s has expired, so that nobody can use the account: put another password into Secret %s, or ask an administrator "+
			"of the database, who may have shut the account on purpose", s.account, u.Spec.Password.Name)
	}
	if s.Locked {
		return o.wait(reasonLocked, "account %s is locked, so that nobody can log in: ask an administrator of the database to unlock it with ALTER USER … ACCOUNT UNLOCK", s.account)
	}
	return nil
}
