// Package accountstest provides a database in memory, for unit tests of its users.
package accountstest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // see setPassword
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// Database is an [accounts.Database] in memory. It refuses what a server's client refuses. The zero value has no accounts.
type Database struct {
	// Plugin is the authentication plugin of new passwords. Default: mysql_native_password, as on MariaDB.
	Plugin string

	// Fail, if set, is called before each method with its name. If it returns an error, the method returns it and does nothing.
	Fail func(method string) error

	mu        sync.Mutex
	calls     []string
	accounts  map[accounts.Account]*accounts.State
	powers    map[accounts.Account][]string
	passwords map[accounts.Account]accounts.Password
}

var _ accounts.Database = (*Database)(nil)

// Calls returns the calls since it was last called, each as the method and the account.
func (d *Database) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := d.calls
	d.calls = nil
	return calls
}

// Accounts returns the accounts, sorted.
func (d *Database) Accounts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for a := range d.accounts {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return names
}

// Password returns the password of an account.
func (d *Database) Password(a accounts.Account) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.passwords[a])
}

// SetPowers sets what Powers returns for an account, which need not exist. They are gone when it is dropped.
func (d *Database) SetPowers(a accounts.Account, powers ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.powers == nil {
		d.powers = map[accounts.Account][]string{}
	}
	d.powers[a] = powers
}

// SetLocked locks or unlocks an account.
func (d *Database) SetLocked(a accounts.Account, locked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accounts[a].Locked = locked
}

// Expire makes the password of an account expire.
func (d *Database) Expire(a accounts.Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accounts[a].Expired = true
}

// Lookup implements [accounts.Database].
func (d *Database) Lookup(_ context.Context, a accounts.Account) (*accounts.State, error) {
	defer d.mu.Unlock()
	if err := d.begin("Lookup", a); err != nil || d.accounts[a] == nil {
		return nil, err
	}
	s := *d.accounts[a]
	s.Grants = accounts.Normalize(s.Grants)
	return &s, nil
}

// AccountsOf implements [accounts.Database].
func (d *Database) AccountsOf(_ context.Context, user string) ([]accounts.Account, error) {
	defer d.mu.Unlock()
	if err := d.begin("AccountsOf", accounts.Account{User: user, Host: "%"}); err != nil {
		return nil, err
	}
	var all []accounts.Account
	for a := range d.accounts {
		if a.User == user {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b accounts.Account) int { return strings.Compare(a.Host, b.Host) })
	return all[:min(len(all), accounts.MaxJudged+1)], nil
}

// Powers implements [accounts.Database]. What a stranger can do is what SetPowers has set for it.
func (d *Database) Powers(_ context.Context, a accounts.Account, strangers ...accounts.Account) ([]string, error) {
	defer d.mu.Unlock()
	if err := d.begin("Powers", a); err != nil {
		return nil, err
	}
	powers := slices.Clone(d.powers[a])
	for _, s := range strangers {
		for _, p := range d.powers[s] {
			powers = append(powers, p+" of "+s.String())
		}
	}
	return powers, nil
}

// Create implements [accounts.Database].
func (d *Database) Create(_ context.Context, a accounts.Account, p accounts.Password, s accounts.Settings) error {
	defer d.mu.Unlock()
	if err := d.begin("Create", a, p, s); err != nil {
		return err
	}
	if d.accounts[a] != nil {
		return accounts.ErrExists
	}
	if d.accounts == nil {
		d.accounts = map[accounts.Account]*accounts.State{}
		d.passwords = map[accounts.Account]accounts.Password{}
	}
	d.accounts[a] = &accounts.State{}
	d.set(a, s)
	d.setPassword(a, p)
	return nil
}

// SetPassword implements [accounts.Database].
func (d *Database) SetPassword(_ context.Context, a accounts.Account, p accounts.Password) error {
	defer d.mu.Unlock()
	if err := d.begin("SetPassword", a, p); err != nil {
		return err
	}
	if d.accounts[a] == nil {
		return accounts.ErrNotFound
	}
	d.setPassword(a, p)
	d.accounts[a].Expired = false
	return nil
}

// SetSettings implements [accounts.Database].
func (d *Database) SetSettings(_ context.Context, a accounts.Account, s accounts.Settings) error {
	defer d.mu.Unlock()
	if err := d.begin("SetSettings", a, s); err != nil {
		return err
	}
	if d.accounts[a] == nil {
		return accounts.ErrNotFound
	}
	d.set(a, s)
	return nil
}

// Drop implements [accounts.Database].
func (d *Database) Drop(_ context.Context, a accounts.Account) error {
	defer d.mu.Unlock()
	if err := d.begin("Drop", a); err != nil {
		return err
	}
	delete(d.accounts, a)
	delete(d.passwords, a)
	delete(d.powers, a)
	return nil
}

// Grant implements [accounts.Database].
func (d *Database) Grant(_ context.Context, a accounts.Account, g accounts.Grant) error {
	defer d.mu.Unlock()
	if err := d.begin("Grant", a, g); err != nil {
		return err
	}
	if d.accounts[a] == nil {
		return accounts.ErrNotFound
	}
	d.accounts[a].Grants = accounts.Normalize(append(d.accounts[a].Grants, g))
	return nil
}

// Revoke implements [accounts.Database].
func (d *Database) Revoke(_ context.Context, a accounts.Account, g accounts.Grant) error {
	defer d.mu.Unlock()
	if err := d.begin("Revoke", a, g); err != nil || d.accounts[a] == nil {
		return err
	}
	d.accounts[a].Grants = accounts.Subtract(d.accounts[a].Grants, []accounts.Grant{g})
	return nil
}

// begin locks the database and records the call. The caller unlocks the database.
func (d *Database) begin(method string, a accounts.Account, others ...interface{ Validate() error }) error {
	d.mu.Lock()
	for _, v := range append(others, a) {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	d.calls = append(d.calls, fmt.Sprintf("%s %s", method, a))
	if d.Fail == nil {
		return nil
	}
	return d.Fail(method)
}

func (d *Database) set(a accounts.Account, s accounts.Settings) {
	switch {
	case s.Mark != "":
		s.Require = "specified" // as [accounts.Client] reads it
	case s.Require == "":
		s.Require = accounts.RequireNone
	}
	d.accounts[a].Settings = s
}

func (d *Database) setPassword(a accounts.Account, p accounts.Password) {
	d.passwords[a] = p
	once := sha1.Sum([]byte(p)) //nolint:gosec // as MariaDB does by default
	twice := sha1.Sum(once[:])  //nolint:gosec // likewise
	stored := fmt.Sprintf("*%X", twice)
	if d.Plugin != "" {
		stored = rand.Text() // with a salt, the same password is stored differently each time
	}
	d.accounts[a].Fingerprint = accounts.NewFingerprint(cmp.Or(d.Plugin, "mysql_native_password"), stored)
}
