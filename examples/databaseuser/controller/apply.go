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

// apply makes the accounts as specified. All of them are ours by now; absent are those that do not exist yet.
func (a *account) apply(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, absent []accounts.Account, record *syncRecord) error {
	if record.fingerprints == nil {
		record.fingerprints = map[string]accounts.Fingerprint{}
	}
	if record.refused == nil {
		record.refused = map[string]bool{}
	}
	var states []*accounts.State
	for _, w := range want.accounts {
		var state *accounts.State
		if !slices.Contains(absent, w) {
			var err error
			if state, err = a.database.Lookup(ctx, w); err != nil {
				return err
			}
		}
		state, err := a.applyAccount(ctx, u, w, want, state, record)
		if err != nil {
			return err
		}
		states = append(states, state)
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

// applyAccount makes an account and its settings as specified, and returns its state.
func (a *account) applyAccount(ctx context.Context, u *userv1alpha1.DatabaseUser, w accounts.Account, want desired,
	state *accounts.State, record *syncRecord) (*accounts.State, error) {
	last, known := record.fingerprints[w.Host]
	var err error
	written := true
	switch {
	case state == nil:
		err = a.database.Create(ctx, w, want.Password, want.settings)
		_, refused := errors.AsType[*accounts.StatementError](err)
		record.refused[w.Host] = refused
	case u.Status.PasswordVersion != want.version, known && last != state.Fingerprint, state.Fingerprint.Differs(want.Password):
		err = a.database.SetPassword(ctx, w, want.Password)
	default:
		written = false
	}
	if errors.Is(err, accounts.ErrExists) {
		state, err = a.createdByReplica(ctx, w, want, err)
	}
	switch {
	case errors.Is(err, accounts.ErrExists) && state == nil:
		record.refused[w.Host] = true // it stays recorded: without that, each pass would write the status twice
		return nil, a.cannotCreate(w)
	case errors.Is(err, accounts.ErrExists): // somebody else has created it since the lookup
		unrecord(u, w)
		return nil, a.accountExists(w)
	case err != nil:
		return nil, err
	}
	if state != nil && state.Settings != normalized(want.settings) {
		if err := a.database.SetSettings(ctx, w, want.settings); err != nil {
			return nil, err
		}
		written = true
	}
	if written {
		if state, err = a.database.Lookup(ctx, w); err != nil || state == nil {
			return nil, cmp.Or(err, fmt.Errorf("account %s was dropped by somebody else just now", w))
		}
	}
	record.fingerprints[w.Host] = state.Fingerprint
	return state, nil
}

// createdByReplica returns the state of an account that was created since the lookup, or nil if there is still none. The error is
// nil if another replica of this operator created it and has ended since: then it has the specified password. Otherwise it
// returns the error exists.
func (a *account) createdByReplica(ctx context.Context, w accounts.Account, want desired, exists error) (*accounts.State, error) {
	state, err := a.database.Lookup(ctx, w)
	switch {
	case err != nil:
		return nil, err
	case state == nil || !state.Fingerprint.Is(want.Password):
		return state, exists
	}
	switch powers, err := a.database.Powers(ctx, w); {
	case err != nil:
		return nil, err
	case len(powers) > 0:
		return state, exists
	}
	return state, nil
}

func normalized(s accounts.Settings) accounts.Settings {
	s.Require = cmp.Or(s.Require, accounts.RequireNone)
	return s
}

// applyGrants revokes and grants all that it can, and returns an error for each grant that failed.
func (a *account) applyGrants(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, states []*accounts.State) error {
	var errs []error
	for i, w := range want.accounts {
		for _, g := range states[i].Surplus(recordedGrants(u), want.grants) {
			errs = append(errs, inField("revoke "+g.String(), a.database.Revoke(ctx, w, g)))
			if unreachable(errs) {
				return errors.Join(errs...)
			}
		}
		for _, g := range states[i].Missing(want.grants) {
			errs = append(errs, inField("grant "+g.String(), a.database.Grant(ctx, w, g)))
			if unreachable(errs) {
				return errors.Join(errs...)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	setRecordedGrants(u, want.grants)
	return nil
}

// unreachable reports whether the last error is that the database cannot be reached. Then all further calls would time out.
func unreachable(errs []error) bool {
	_, is := errors.AsType[*accounts.UnreachableError](errs[len(errs)-1])
	return is
}
