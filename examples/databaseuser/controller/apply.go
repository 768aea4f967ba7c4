package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
)

// apply makes the accounts as specified. All of them are recorded in the status.
func (a *account) apply(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, all []found, record *syncRecord) error {
	if record.fingerprints == nil {
		record.fingerprints = map[string]accounts.Fingerprint{}
	}
	changed := make([]bool, len(all))
	for i := range all {
		var err error
		if changed[i], err = a.applyPassword(ctx, u, want, &all[i], record); err != nil {
			return err
		}
	}
	confirm(u, want.version)
	states := make([]*accounts.State, len(all))
	for i := range all {
		var err error
		if states[i], err = a.applySettings(ctx, want, all[i], changed[i]); err != nil {
			return err
		}
		record.fingerprints[all[i].Host] = states[i].Fingerprint
	}
	err := a.applyGrants(ctx, u, want, states)
	u.Status.PasswordVersion = want.version // not earlier: a checkpoint would write it in a request of its own
	if err != nil {
		return err
	}
	return a.checkLocks(want.accounts, states)
}

// checkLocks returns a wait for an account that somebody has locked. The operator does not unlock it.
func (a *account) checkLocks(all []accounts.Account, states []*accounts.State) error {
	for i, w := range all {
		if states[i].Locked {
			return a.wait(reasonLocked, "account %s is locked, so that nobody can log in: ask an administrator of the database to unlock it with ALTER USER … ACCOUNT UNLOCK", w)
		}
	}
	return nil
}

// applyPassword creates an account, with our mark, or sets its password if it may be another one. It reports whether it did
// anything.
func (a *account) applyPassword(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, f *found, record *syncRecord) (bool, error) {
	if f.state == nil {
		marked := want.settings
		marked.Mark = markOf(u)
		err := a.database.Create(ctx, f.Account, want.Password, marked)
		if !errors.Is(err, accounts.ErrExists) {
			return true, err
		}
		if f.state, err = a.createdSince(ctx, u, f.Account); err != nil {
			return false, err
		}
	}
	last, known := record.fingerprints[f.Host]
	if f.pending || u.Status.PasswordVersion != want.version || known && last != f.state.Fingerprint || f.state.Fingerprint.Differs(want.Password) {
		return true, a.database.SetPassword(ctx, f.Account, want.Password)
	}
	return false, nil
}

// createdSince returns the state of an account that was created since the lookup. Another replica of this operator,
// which has ended since, may have created it for u. If somebody else has created it, or if it does not exist after all,
// createdSince returns an error.
func (a *account) createdSince(ctx context.Context, u *userv1alpha1.DatabaseUser, w accounts.Account) (*accounts.State, error) {
	state, err := a.database.Lookup(ctx, w)
	switch {
	case err != nil:
		return nil, err
	case state == nil: // it stays recorded: without that, each pass would write the status twice
		return nil, a.cannotCreate(w)
	case state.Mark != markOf(u):
		unrecord(u, w)
		return nil, a.accountExists(w)
	}
	return state, nil
}

// applySettings makes the settings of an account as specified, which takes off the mark, and returns its state.
func (a *account) applySettings(ctx context.Context, want desired, f found, changed bool) (*accounts.State, error) {
	if f.state == nil || f.state.Settings != normalized(want.settings) {
		if err := a.database.SetSettings(ctx, f.Account, want.settings); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return f.state, nil
	}
	state, err := a.database.Lookup(ctx, f.Account)
	if err == nil && state == nil {
		err = fmt.Errorf("account %s was dropped by somebody else just now", f.Account)
	}
	return state, err
}

func normalized(s accounts.Settings) accounts.Settings {
	s.Require = cmp.Or(s.Require, accounts.RequireNone)
	return s
}

// applyGrants revokes and grants all that it can, and returns an error for each statement that the server refuses. It stops at any
// other error, such as a conflict: each further statement would meet the same error, after a request of its own.
func (a *account) applyGrants(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, states []*accounts.State) error {
	var errs []error
	recorded, kept := recordedGrants(u), slices.Clone(want.grants)
	for i, w := range want.accounts {
		for _, g := range states[i].Surplus(recorded, want.grants) {
			if err := a.database.Revoke(ctx, w, g); err != nil {
				errs, kept = append(errs, inField("revoke "+g.String(), err)), append(kept, g)
				if !isRefusal(err) {
					return errors.Join(errs...)
				}
			}
		}
		for _, g := range states[i].Missing(want.grants) {
			if err := a.database.Grant(ctx, w, g); err != nil {
				errs = append(errs, inField("grant "+g.String(), err))
				if !isRefusal(err) {
					return errors.Join(errs...)
				}
			}
		}
	}
	// Also if some were refused: else a spec that changes often makes the record longer and longer.
	setRecordedGrants(u, accounts.Normalize(kept))
	return errors.Join(errs...)
}

// isRefusal reports whether an error is of one statement only: the server refuses it, or it cannot be sent.
func isRefusal(err error) bool {
	_, isStatement := errors.AsType[*accounts.StatementError](err)
	_, isInvalid := errors.AsType[*accounts.InvalidError](err)
	return isStatement || isInvalid
}
