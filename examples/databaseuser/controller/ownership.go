package controller

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// ownership is what the status of a DatabaseUser says of an account.
type ownership int

const (
	unrecorded ownership = iota
	// pending: the account is about to be created. The process may have ended before, or the server may have refused, so an
	// account of this name may be somebody else's. The account of the DatabaseUser carries its mark until it is confirmed.
	pending
	// confirmed: the account was created, or adopted, for the DatabaseUser.
	confirmed
)

// ownershipOf returns what the status of u says of an account, in this database.
func (o *Operator) ownershipOf(u *userv1alpha1.DatabaseUser, w accounts.Account) ownership {
	switch {
	case !o.isRecorded(u) || u.Status.User != w.User || !slices.Contains(u.Status.Hosts, w.Host):
		return unrecorded
	case slices.Contains(u.Status.PendingHosts, w.Host), isUnconfirmed(u):
		return pending
	}
	return confirmed
}

// ownershipOfName returns what the status of u says of a user name: the most that it says of an account of this name.
func (o *Operator) ownershipOfName(u *userv1alpha1.DatabaseUser, name string) ownership {
	most := unrecorded
	for _, host := range u.Status.Hosts {
		most = max(most, o.ownershipOf(u, accounts.Account{User: name, Host: host}))
	}
	return most
}

// isUnconfirmed reports whether the status is from a version of the operator that did not record pending hosts, and that has
// not reported success since it recorded the accounts. Some of them may not have been created.
func isUnconfirmed(u *userv1alpha1.DatabaseUser) bool {
	return u.Status.PasswordVersion == "" && len(u.Status.PendingHosts) == 0
}

// markOf returns the mark of the accounts that are created for u. No other object has its UID, in any cluster.
func markOf(u *userv1alpha1.DatabaseUser) accounts.Mark {
	return accounts.Mark("DatabaseUser " + string(u.UID))
}

// isOurs reports whether an account is ours: it exists, and is confirmed, or was created for u just before the process ended. Then it
// has the mark, which is taken off only after the status confirms the account. An earlier version of the operator made no marks.
// Its accounts are known by their password.
func (a *account) isOurs(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, w accounts.Account, state *accounts.State) (bool, error) {
	switch owned := a.ownershipOf(u, w); {
	case state == nil, owned == unrecorded:
		return false, nil
	case owned == confirmed, state.Mark == markOf(u):
		return true, nil
	case !isUnconfirmed(u) || u.Spec.Password == nil:
		return false, nil
	}
	password, _, err := a.password(ctx, c, u)
	if _, isMissing := errors.AsType[reconcile.Waiter](err); isMissing {
		return false, nil
	}
	return err == nil && state.Fingerprint.Is(password), err
}

// record writes to the status in memory which accounts are ours, or are about to be.
func (a *account) record(u *userv1alpha1.DatabaseUser, want desired, all []found) {
	if u.Status.User != u.Spec.User {
		setRecordedGrants(u, nil) // they are dropped with the accounts
	}
	u.Status.Target, u.Status.User, u.Status.Hosts, u.Status.PendingHosts = a.Target, u.Spec.User, nil, nil
	for _, f := range all {
		u.Status.Hosts = append(u.Status.Hosts, f.Host)
		if f.pending {
			u.Status.PendingHosts = append(u.Status.PendingHosts, f.Host)
		}
	}
	if len(u.Status.PendingHosts) == len(all) {
		u.Status.PasswordVersion = ""
	}
	setRecordedGrants(u, accounts.Normalize(append(recordedGrants(u), want.grants...)))
}

// confirm writes to the status in memory that all recorded accounts are ours. The next change of the database writes it to the
// API server first, such as the one that takes off the mark.
func confirm(u *userv1alpha1.DatabaseUser, version string) {
	u.Status.PendingHosts = nil
	if u.Status.PasswordVersion == "" {
		u.Status.PasswordVersion = version
	}
}

// unrecord removes an account from the status in memory: it is not ours.
func unrecord(u *userv1alpha1.DatabaseUser, w accounts.Account) {
	if u.Status.User != w.User {
		return
	}
	isHost := func(host string) bool { return host == w.Host }
	u.Status.Hosts = slices.DeleteFunc(slices.Clone(u.Status.Hosts), isHost)
	u.Status.PendingHosts = slices.DeleteFunc(slices.Clone(u.Status.PendingHosts), isHost)
}

// unrecordUnwanted removes the accounts from the status in memory that are not among the wanted ones.
func unrecordUnwanted(u *userv1alpha1.DatabaseUser, want []accounts.Account) {
	for _, m := range recordedAccounts(u) {
		if !slices.Contains(want, m) {
			unrecord(u, m)
		}
	}
	if len(u.Status.Hosts) == len(u.Status.PendingHosts) { // none is left that has a password
		u.Status.PasswordVersion = ""
	}
	if len(u.Status.Hosts) == 0 {
		u.Status.User, u.Status.Grants = "", nil
	}
}

// dropAccount drops a recorded account. It leaves an account that is not known to be ours, and one that another DatabaseUser has
// and specifies too.
func (a *account) dropAccount(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, m accounts.Account) error {
	owned := a.ownershipOf(u, m)
	if owned == unrecorded {
		return nil
	}
	others, err := a.others(ctx, c, u, m.User)
	if err != nil {
		return err
	}
	for _, other := range others {
		if a.ownershipOf(other, m) == confirmed && a.isTarget(other) && specifies(other, m) {
			return nil
		}
	}
	if owned == pending {
		state, err := a.database.Lookup(ctx, m)
		if err != nil || state == nil {
			return err
		}
		switch ours, err := a.isOurs(ctx, c, u, m, state); {
		case err != nil:
			return err
		case !ours:
			a.reportLeft(u, m)
			return nil
		}
	}
	return a.database.Drop(ctx, m)
}

// reportLeft reports an account that was recorded, and that is not dropped because nothing shows that it is ours.
func (a *account) reportLeft(u *userv1alpha1.DatabaseUser, m accounts.Account) {
	if a.recorder != nil {
		a.recorder.Eventf(u, nil, corev1.EventTypeWarning, reasonLeft, "Drop",
			"account %s exists, but nothing shows that it was made for this DatabaseUser: it is left alone; drop it by hand if nobody needs it", m)
	}
}
