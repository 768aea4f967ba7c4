package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
)

// maxShown limits the length of a message.
const maxShown = 3

// judge returns an error if one of the accounts must not be created or adopted: whoever may write DatabaseUsers would get what
// it can do. The user name is what belongs to somebody. The server lets a connection in as the account with the most specific
// host, and lets this account use the privileges that others of its name have in databases. So a new account takes logins from
// the others of its name, and gets their privileges.
func (a *account) judge(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want []accounts.Account, acquired []found) error {
	if len(acquired) == 0 {
		return nil
	}
	strangers, err := a.strangers(ctx, c, u, want)
	if err == nil && len(strangers) > 0 {
		err = a.refuseNamesakes(ctx, c, u, acquired, strangers)
	}
	if err != nil {
		return err
	}
	for _, f := range acquired {
		powers, err := a.database.Powers(ctx, f.Account, strangers...)
		switch {
		case err != nil:
			return err
		case len(powers) > 0:
			unrecord(u, f.Account)
			return a.tooPowerful(f.Account, f.state == nil, powers)
		}
	}
	return nil
}

// strangers returns the accounts on the server that have the specified user name, and are neither specified nor ours.
func (a *account) strangers(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, want []accounts.Account) ([]accounts.Account, error) {
	all, err := a.database.AccountsOf(ctx, u.Spec.User)
	if err != nil {
		return nil, err
	}
	var strangers []accounts.Account
	for _, n := range all {
		owned := a.ownershipOf(u, n)
		if owned == confirmed || slices.Contains(want, n) {
			continue
		}
		if owned == pending {
			state, err := a.database.Lookup(ctx, n)
			if err != nil {
				return nil, err
			}
			switch ours, err := a.isOurs(ctx, c, u, n, state); {
			case err != nil:
				return nil, err
			case ours:
				continue
			}
		}
		strangers = append(strangers, n)
	}
	return strangers, nil
}

// refuseNamesakes returns a wait if accounts of the same name belong to another DatabaseUser, or to somebody else and spec.adopt
// is not set. The accounts that were about to be acquired are not recorded any more.
func (a *account) refuseNamesakes(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, acquired []found, strangers []accounts.Account) error {
	others, err := a.others(ctx, c, u, u.Spec.User)
	if err != nil {
		return err
	}
	refusal := a.nameExists(acquired[0].Account, strangers)
	owner := slices.IndexFunc(others, func(other *userv1alpha1.DatabaseUser) bool {
		return slices.ContainsFunc(strangers, func(s accounts.Account) bool { return a.ownershipOf(other, s) != unrecorded })
	})
	switch {
	case owner >= 0:
		refusal = a.wait(reasonClaimed, claimed, client.ObjectKeyFromObject(others[owner]))
	case u.Spec.Adopt:
		return nil
	}
	for _, f := range acquired {
		unrecord(u, f.Account)
	}
	return refusal
}

func (a *account) nameExists(w accounts.Account, strangers []accounts.Account) error {
	var names []string
	for _, s := range strangers {
		names = append(names, s.String())
	}
	return a.wait(reasonExists, "account %s would take the logins and get the privileges of %s, of the same user name, which was not made for this DatabaseUser: "+
		"it is not created; choose another name, or set spec.adopt to create it all the same", w, some(names))
}

func (a *account) tooPowerful(w accounts.Account, isAbsent bool, powers []string) error {
	if isAbsent {
		return a.wait(reasonExists, "account %s would have privileges of others, beyond the use of databases: %s; it is not created; choose another name", w, some(powers))
	}
	return a.wait(reasonExists, "account %s has privileges beyond the use of databases: %s; it is not taken over, not even by spec.adopt; choose another name", w, some(powers))
}

// some returns the first of the words, and how many more there are.
func some(words []string) string {
	shown := strings.Join(words[:min(len(words), maxShown)], ", ")
	if more := len(words) - maxShown; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return shown
}
