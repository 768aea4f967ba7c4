package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// desired is the validated content of a spec, and the password that it refers to.
type desired struct {
	accounts []accounts.Account // sorted by host
	grants   []accounts.Grant   // in the order of the spec
	settings accounts.Settings
	password accounts.Password
	version  string           // the version of the password
	granted  []accounts.Grant // by earlier passes
	progress *progress
}

// desiredFrom returns the desired state of a spec. All that is wrong with it is in the error, which wraps an
// [accounts.InvalidError] for each.
func desiredFrom(u *userv1alpha1.DatabaseUser) (desired, error) {
	d := desired{settings: accounts.Settings{
		Require: accounts.Require(cmp.Or(u.Spec.Require, userv1alpha1.RequireNone)),
		Limits: accounts.Limits{
			MaxUserConnections:    int64(u.Spec.Limits.MaxUserConnections),
			MaxConnectionsPerHour: int64(u.Spec.Limits.MaxConnectionsPerHour),
			MaxQueriesPerHour:     int64(u.Spec.Limits.MaxQueriesPerHour),
			MaxUpdatesPerHour:     int64(u.Spec.Limits.MaxUpdatesPerHour),
		},
	}}
	errs := []error{inField("spec", d.settings.Validate())}
	names, all := []string(nil), u.Spec.Hosts
	if len(all) == 0 {
		all = []string{"%"}
	}
	for i, given := range all {
		host, err := accounts.CanonicalHost(given)
		if err != nil {
			errs = append(errs, inField(fmt.Sprintf("spec.hosts[%d]", i), err))
			continue
		}
		names = append(names, host)
	}
	slices.Sort(names)
	for _, host := range slices.Compact(names) {
		account := accounts.Account{User: u.Spec.User, Host: host}
		d.accounts = append(d.accounts, account)
		if err := account.Validate(); err != nil {
			errs = append(errs, inField("spec.user", err))
			break
		}
	}
	for i, g := range u.Spec.Grants {
		grant := accounts.Grant{Database: g.Database, Table: g.Table}
		for _, p := range g.Privileges {
			grant.Privileges = append(grant.Privileges, string(p))
		}
		errs = append(errs, inField(fmt.Sprintf("spec.grants[%d]", i), grant.Validate()))
		d.grants = append(d.grants, grant)
	}
	return d, errors.Join(errs...)
}

func inField(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}
