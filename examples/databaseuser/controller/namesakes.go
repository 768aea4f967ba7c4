package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/reconcile/external"
)

// maxShown limits the length of a message.
const maxShown = 3

// adopt returns a wait unless an account that exists may be taken over.
func (o *Operator) adopt(u *userv1alpha1.DatabaseUser, s state) error {
	switch {
	case !u.Spec.Adopt:
		return o.wait(reasonExists, "account %s exists and was not made for this DatabaseUser: it is left alone; choose another name, or set spec.adopt to take it over", s.account)
	case s.Locked:
		return o.wait(reasonExists, "account %s is locked: it is not taken over, not even by spec.adopt; choose another name, or ask an administrator of the database to unlock it", s.account)
	}
	return nil
}

// cannotCreate returns a wait for an account that does not exist, although the server answers that it does: it refuses CREATE
// USER if its tables have privileges for the account, or, on MariaDB, an account of this name for the empty host.
func (o *Operator) cannotCreate(w accounts.Account) error {
	return o.wait(reasonExists, "account %s cannot be created: the server still has privileges for it, which DROP USER removes, or an account of this name for the empty host; "+
		"choose another name, or ask an administrator of the database", w)
}

// admit returns an error if an account must not be created or adopted: whoever may write DatabaseUsers would get what it can do. The
// user name is what belongs to somebody. The server lets a connection in as the account with the most specific host, and lets
// this account use the privileges that others of its name have in databases. So a new account takes logins from the others of
// its name, and gets their privileges.
func (o *Operator) admit(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, ref external.Reference, found *state) error {
	w := accountOf(ref.Key)
	strangers, err := o.strangers(ctx, c, u)
	if err == nil && len(strangers) > 0 {
		err = o.refuseNamesakes(ctx, c, u, w, strangers)
	}
	if err != nil {
		return provisionError(err)
	}
	powers, err := o.Database.Powers(ctx, w, strangers...)
	if err == nil && len(powers) > 0 {
		return o.tooPowerful(w, found == nil, powers)
	}
	return provisionError(err)
}

// strangers returns the accounts on the server that have the specified user name, and are neither specified nor ours.
func (o *Operator) strangers(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser) ([]accounts.Account, error) {
	all, err := o.Database.AccountsOf(ctx, u.Spec.User)
	if err != nil {
		return nil, err
	}
	specified, recorded := o.keys(u), o.record(u).Things
	var strangers []accounts.Account
	for _, a := range all {
		at := slices.IndexFunc(recorded, func(ref external.Reference) bool { return ref.Key == keyOf(a) })
		switch {
		case slices.Contains(specified, keyOf(a)), at >= 0 && !recorded[at].Pending:
			continue
		case at >= 0:
			s, err := o.observe(ctx, c, u, recorded[at])
			if err != nil && !errors.Is(err, external.ErrNotFound) {
				return nil, err
			}
			if s.isMarked {
				continue
			}
		}
		strangers = append(strangers, a)
	}
	return strangers, nil
}

// refuseNamesakes returns a wait if accounts of the same name belong to another DatabaseUser, or to somebody else and spec.adopt
// is not set.
func (o *Operator) refuseNamesakes(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, w accounts.Account, strangers []accounts.Account) error {
	others, err := o.others(ctx, c, u, u.Spec.User)
	if err != nil {
		return err
	}
	for _, other := range others {
		for _, ref := range o.record(other).Things {
			if other.UID != u.UID && slices.Contains(strangers, accountOf(ref.Key)) {
				return o.wait(reasonClaimed, betterClaim, client.ObjectKeyFromObject(other))
			}
		}
	}
	if u.Spec.Adopt {
		return nil
	}
	var names []string
	for _, s := range strangers {
		names = append(names, s.String())
	}
	return o.wait(reasonExists, "account %s would take the logins and get the privileges of %s, of the same user name, which was not made for this DatabaseUser: "+
		"it is not created; choose another name, or set spec.adopt to create it all the same", w, some(names))
}

func (o *Operator) tooPowerful(w accounts.Account, isAbsent bool, powers []string) error {
	if isAbsent {
		return o.wait(reasonExists, "account %s would have privileges of others, beyond the use of databases: %s; it is not created; choose another name", w, some(powers))
	}
	return o.wait(reasonExists, "account %s has privileges beyond the use of databases: %s; it is not taken over, not even by spec.adopt; choose another name", w, some(powers))
}

// some returns the first of the words, and how many more there are.
func some(words []string) string {
	shown := strings.Join(words[:min(len(words), maxShown)], ", ")
	if more := len(words) - maxShown; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return shown
}
