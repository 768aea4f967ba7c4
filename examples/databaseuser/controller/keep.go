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

// keep makes the accounts, all of which are ours by now, as they should be.
func (a *account) keep(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, absent []accounts.Account, is *check) error {
	if is.fingerprints == nil {
		is.fingerprints = map[string]accounts.Fingerprint{}
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
		state, err := a.keepOne(ctx, u, w, want, state, is.fingerprints)
		if err != nil {
			return err
		}
		states = append(states, state)
	}
	err := a.keepGrants(ctx, u, want, states)
	u.Status.PasswordVersion = want.version // not before: a checkpoint would write it by a request of its own
	return err
}

// keepOne makes the account and its settings as they should be, and gives what is then there.
func (a *account) keepOne(ctx context.Context, u *userv1alpha1.DatabaseUser, w accounts.Account, want desired,
	state *accounts.State, fingerprints map[string]accounts.Fingerprint) (*accounts.State, error) {
	last, known := fingerprints[w.Host]
	var err error
	written := true
	switch {
	case state == nil:
		err = a.database.Create(ctx, w, want.Password, want.settings)
	case u.Status.PasswordVersion != want.version, known && last != state.Fingerprint, state.Fingerprint.Differs(want.Password):
		err = a.database.SetPassword(ctx, w, want.Password)
	default:
		written = false
	}
	if errors.Is(err, accounts.ErrExists) {
		state, err = a.madeByReplica(ctx, w, want, err)
	}
	switch {
	case errors.Is(err, accounts.ErrExists) && !u.Spec.Adopt: // somebody else has made it since we looked
		u.Status.Hosts = slices.DeleteFunc(u.Status.Hosts, func(host string) bool { return host == w.Host })
		return nil, a.exists(w)
	case err != nil:
		return nil, err
	}
	if state != nil && state.Settings != normal(want.settings) {
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
	fingerprints[w.Host] = state.Fingerprint
	return state, nil
}

// madeByReplica gives an account that has come to be since we looked, if another replica of this operator made it, which has gone
// since: then it has the password that is wanted. Otherwise it gives the error.
func (a *account) madeByReplica(ctx context.Context, w accounts.Account, want desired, exists error) (*accounts.State, error) {
	state, err := a.database.Lookup(ctx, w)
	switch {
	case err != nil:
		return nil, err
	case state == nil || state.Global || !state.Fingerprint.Is(want.Password):
		return nil, exists
	}
	return state, nil
}

func normal(s accounts.Settings) accounts.Settings {
	s.Require = cmp.Or(s.Require, accounts.RequireNone)
	return s
}

// keepGrants revokes and grants all that it can, and says what it could not.
func (a *account) keepGrants(ctx context.Context, u *userv1alpha1.DatabaseUser, want desired, states []*accounts.State) error {
	var errs []error
	for i, w := range want.accounts {
		for _, g := range states[i].Surplus(granted(u), want.grants) {
			errs = append(errs, in("revoke "+g.String(), a.database.Revoke(ctx, w, g)))
			if unreachable(errs) {
				return errors.Join(errs...)
			}
		}
		for _, g := range states[i].Missing(want.grants) {
			errs = append(errs, in("grant "+g.String(), a.database.Grant(ctx, w, g)))
			if unreachable(errs) {
				return errors.Join(errs...)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	recordGrants(u, want.grants)
	return nil
}

// unreachable says that there is no use in going on: each call would take its time.
func unreachable(errs []error) bool {
	_, is := errors.AsType[*accounts.UnreachableError](errs[len(errs)-1])
	return is
}
