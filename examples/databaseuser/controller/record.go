package controller

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// keyOf returns the key of an account.
func keyOf(a accounts.Account) string { return a.User + "@" + a.Host }

// accountOf returns the account of a key. A host has no @.
func accountOf(key string) accounts.Account {
	at := strings.LastIndex(key, "@")
	return accounts.Account{User: key[:at], Host: key[at+1:]}
}

// userOf returns the user name of a key. It belongs to one DatabaseUser, on all hosts: see [Operator.admit].
func userOf(key string) string { return accountOf(key).User }

// keys returns the keys of the accounts that this operator is to keep for u.
func (o *Operator) keys(u *userv1alpha1.DatabaseUser) (keys []string) {
	if !o.isTarget(u) {
		return nil
	}
	want, _ := desiredFrom(u) // an error is reported by the pass
	for _, a := range want.accounts {
		keys = append(keys, keyOf(a))
	}
	return keys
}

// record returns what the status says of the accounts in this database.
func (o *Operator) record(u *userv1alpha1.DatabaseUser) *external.Record {
	r := &external.Record{Version: u.Status.PasswordVersion, Generation: u.Status.ObservedGeneration}
	if !o.isRecorded(u) {
		return r
	}
	for _, host := range u.Status.Hosts {
		isPending := slices.Contains(u.Status.PendingHosts, host) || isUnconfirmed(u)
		r.Things = append(r.Things, external.Reference{Key: keyOf(accounts.Account{User: u.Status.User, Host: host}), Pending: isPending})
	}
	return r
}

// outdated is the version of the password while it is set anew. An empty one would mean that no account is confirmed.
const outdated = "outdated"

// save writes a record to the status. The operator drops the accounts of a former user name before it records others.
func (o *Operator) save(u *userv1alpha1.DatabaseUser, r *external.Record) {
	s, former := &u.Status, u.Status.User
	s.User, s.Hosts, s.PendingHosts, s.PasswordVersion = "", nil, nil, ""
	for _, ref := range slices.Concat(r.Things, r.Former) {
		a := accountOf(ref.Key)
		s.User, s.Target, s.Hosts = a.User, o.Target, append(s.Hosts, a.Host)
		if ref.Pending {
			s.PendingHosts = append(s.PendingHosts, a.Host)
		}
	}
	slices.Sort(s.Hosts)
	slices.Sort(s.PendingHosts)
	switch {
	case len(s.Hosts) == len(s.PendingHosts):
	case r.Version == "":
		s.PasswordVersion = outdated
	default:
		s.PasswordVersion = r.Version
	}
	if s.User != former {
		s.Grants = nil // they were dropped with the accounts
	}
	if len(s.PendingHosts) > 0 {
		want, _ := desiredFrom(u)
		setRecordedGrants(u, append(recordedGrants(u), want.grants...))
	}
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

// isMarked reports whether an account was created for u. Then it has the mark, which is taken off only after the status confirms
// the account. An earlier version of the operator made no marks. Its accounts are known by their password.
func isMarked(ctx context.Context, c client.Client, u *userv1alpha1.DatabaseUser, found *accounts.State) (bool, error) {
	if found.Mark == markOf(u) || !isUnconfirmed(u) || len(u.Status.Hosts) == 0 || u.Spec.Password == nil {
		return found.Mark == markOf(u), nil
	}
	password, _, err := readPassword(ctx, c, u)
	if _, isMissing := errors.AsType[reconcile.Waiter](err); isMissing {
		return false, nil
	}
	return err == nil && found.Fingerprint.Is(password), err
}

// isOurs reports whether an account that the status records as pending is ours. It reports one that is not to be dropped because nothing
// shows that it is ours.
func (o *Operator) isOurs(u *userv1alpha1.DatabaseUser, ref external.Reference, s state) bool {
	isLeft := u.DeletionTimestamp != nil || !slices.Contains(o.keys(u), ref.Key)
	if !s.isMarked && isLeft && o.recorder != nil {
		o.recorder.Eventf(u, nil, corev1.EventTypeWarning, reasonLeft, "Drop",
			"account %s exists, but nothing shows that it was made for this DatabaseUser: it is left alone; drop it by hand if nobody needs it", s.account)
	}
	return s.isMarked
}
