package accounts

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
)

// Lookup implements [Database].
func (c *Client) Lookup(ctx context.Context, a Account) (*State, error) {
	if err := c.validate(a); err != nil {
		return nil, err
	}
	var s State
	err := c.do(ctx, func(ctx context.Context) error {
		if err := c.readAccount(ctx, a, &s); err != nil {
			return err
		}
		onDatabases, err := c.readDatabaseGrants(ctx, a)
		if err != nil {
			return err
		}
		onTables, err := c.readTableGrants(ctx, a)
		s.Grants = Normalize(append(onDatabases, onTables...))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &s, err
}

func (c *Client) readAccount(ctx context.Context, a Account, s *State) error {
	var plugin, stored, require, subject string
	var lowerCase int
	var mariaDB bool
	err := c.db.QueryRowContext(ctx, selectAccount, a.User, a.Host).Scan(&plugin, &stored, &require, &subject,
		&s.Limits.MaxUserConnections, &s.Limits.MaxConnectionsPerHour, &s.Limits.MaxQueriesPerHour, &s.Limits.MaxUpdatesPerHour,
		&lowerCase, &mariaDB)
	if err != nil {
		return err
	}
	if err := c.db.QueryRowContext(ctx, selectExpired(mariaDB), a.User, a.Host).Scan(&s.Expired); err != nil {
		return err
	}
	s.Fingerprint, s.NamesIgnoreCase = NewFingerprint(plugin, stored), lowerCase != 0
	s.Require = map[string]Require{"": RequireNone, "ANY": RequireSSL, "X509": RequireX509, "SPECIFIED": requireOther}[require]
	if s.Require == requireOther {
		s.Mark = Mark(subject)
	}
	lines, err := c.readLines(ctx, showCreateUser(a))
	s.Locked = slices.ContainsFunc(lines, isLocked)
	return err
}

// readDatabaseGrants skips patterns that match several databases: this package never grants on them.
func (c *Client) readDatabaseGrants(ctx context.Context, a Account) (grants []Grant, err error) {
	rows, err := c.db.QueryContext(ctx, selectDatabaseGrants(), a.User, a.Host)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var stored string
	has := make([]bool, len(privileges))
	into := []any{&stored}
	for i := range has {
		into = append(into, &has[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		database, one := exactly(stored)
		if !one {
			continue
		}
		g := Grant{Database: database}
		for i, p := range privileges {
			if has[i] {
				g.Privileges = append(g.Privileges, p.name)
			}
		}
		grants = append(grants, g)
	}
	return grants, rows.Err()
}

func (c *Client) readTableGrants(ctx context.Context, a Account) (grants []Grant, err error) {
	rows, err := c.db.QueryContext(ctx, selectTableGrants, a.User, a.Host)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var g Grant
		var members string
		if err := rows.Scan(&g.Database, &g.Table, &members); err != nil {
			return nil, err
		}
		set := strings.Split(members, ",")
		for _, p := range privileges {
			if p.member != "" && slices.Contains(set, p.member) {
				g.Privileges = append(g.Privileges, p.name)
			}
		}
		grants = append(grants, g)
	}
	return grants, rows.Err()
}
