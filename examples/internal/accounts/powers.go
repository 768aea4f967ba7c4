package accounts

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Powers implements [Database].
//
// The server lets an account use not only its own privileges. Privileges in databases hold for every account of the
// same user name whose host matches the connection: bob@10.1.2.3 has the privileges of bob@10.% too. The privileges of
// the anonymous user hold for everybody, and PUBLIC is a role of everybody. Rows in the server's tables hold even if
// their account does not exist any more.
//
// Each query has a timeout of its own, so that many accounts do not look like a server that does not answer.
func (c *Client) Powers(ctx context.Context, a Account, strangers ...Account) ([]string, error) {
	if err := c.validate(a); err != nil {
		return nil, err
	}
	holders, mariaDB, err := c.accountsBy(ctx, selectHolders, a.User)
	switch {
	case err != nil:
		return nil, err
	case len(holders) > MaxJudged:
		return []string{fmt.Sprintf("perhaps those of more than %d accounts, which are too many to judge", MaxJudged)}, nil
	}
	var found []string
	for _, h := range holders {
		isStranger := slices.Contains(strangers, h)
		lines, err := c.lines(ctx, showGrants(h))
		if err != nil {
			return nil, err
		}
		slices.Sort(lines) // the server's order changes with the grants of others, and what users see must not
		found = append(found, powers(a, h, lines, isStranger)...)
		if !isStranger {
			continue
		}
		if lines, err = c.lines(ctx, showCreateUser(h)); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(lines, isLocked) {
			found = append(found, "those of "+h.shown()+", which is locked")
		}
	}
	leftovers, err := c.readLeftovers(ctx, a, mariaDB)
	for _, l := range leftovers {
		found = appendPowers(found, l.grant.powers(l.holder == a), of(a, l.holder), " by a row in "+l.table)
	}
	return found, err
}

// AccountsOf implements [Database].
func (c *Client) AccountsOf(ctx context.Context, user string) ([]Account, error) {
	if err := c.validate(Account{User: user, Host: "%"}); err != nil {
		return nil, err
	}
	all, _, err := c.accountsBy(ctx, selectAccounts, user)
	return all, err
}

// accountsBy returns the accounts that a query selects by a user name, and whether the server is MariaDB.
func (c *Client) accountsBy(ctx context.Context, query func(isMariaDB bool) string, user string) (all []Account, mariaDB bool, err error) {
	err = c.do(ctx, func(ctx context.Context) error {
		if err := c.db.QueryRowContext(ctx, "SELECT "+isMariaDB).Scan(&mariaDB); err != nil {
			return err
		}
		all, err = c.readAccounts(ctx, query(mariaDB), user)
		return err
	})
	return all, mariaDB, err
}

func (c *Client) readAccounts(ctx context.Context, query, user string) ([]Account, error) {
	rows, err := c.db.QueryContext(ctx, query, user)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Account
	for rows.Next() {
		var h Account
		if err := rows.Scan(&h.User, &h.Host); err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, rows.Err()
}

// lines calls readLines with a timeout of its own.
func (c *Client) lines(ctx context.Context, statement string) (lines []string, err error) {
	err = c.do(ctx, func(ctx context.Context) error {
		lines, err = c.readLines(ctx, statement)
		return err
	})
	return lines, err
}

// readLines returns the first column of the rows of a statement that has no parameters.
func (c *Client) readLines(ctx context.Context, statement string) ([]string, error) {
	rows, err := c.db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, rows.Err()
}

// public is MariaDB's role of everybody, as an account.
var public = Account{User: "PUBLIC"}

// harmless are the privileges that only use a database. All others count as powers, also those that a later server adds.
var harmless = append(Privileges(false), "ALL PRIVILEGES", "USAGE", "DELETE HISTORY", "SHOW CREATE ROUTINE")

// powers returns what account a can do, besides using databases, because of the lines that SHOW GRANTS has for the account
// holder. It is empty if they are only privileges in databases other than the server's own, without GRANT OPTION. What it does
// not understand counts as a power. All that a stranger can do counts, as if account a could do it.
func powers(a, holder Account, lines []string, isStranger bool) []string {
	var found []string
	for _, line := range lines {
		what := []string{"something unknown in the list of the server"}
		if g, ok := parseGrantLine(line); ok {
			what = g.powers(holder == a || holder == public || isStranger)
		}
		found = appendPowers(found, what, of(a, holder), "")
	}
	return found
}

// powers returns what the grant allows besides using databases. If it is of another account, only what is in databases, and
// PROXY, holds for the account that is judged.
func (g grantLine) powers(isOwn bool) (found []string) {
	everywhere := g.database == "*" && !g.quoted
	switch {
	case (everywhere || g.role != "") && !isOwn:
	case g.role != "":
		found = append(found, "the role "+g.role)
	case slices.Contains(g.privileges, "PROXY"):
		found = append(found, "PROXY")
	default:
		on := " on " + g.database + "." + g.object
		isSystem := everywhere || matchesSystemDatabase(g.database, g.object == "*")
		for _, p := range g.privileges {
			if p != "USAGE" && (isSystem || !slices.Contains(harmless, p)) {
				found = append(found, p+on)
			}
		}
		if g.grantable {
			found = append(found, grantOption+on)
		}
	}
	return found
}

// appendPowers appends what is not among the powers found yet: what is said of a holder, and where it was found.
func appendPowers(found, what []string, holder, where string) []string {
	for _, w := range what {
		if w += holder; !slices.Contains(found, w) && !slices.Contains(found, w+where) {
			found = append(found, w+where)
		}
	}
	return found
}

// of returns the words that name the holder of a power, unless it is the account itself.
func of(a, holder Account) string {
	if holder == a {
		return ""
	}
	return " of " + holder.shown()
}

func (a Account) shown() string {
	if a == public {
		return a.User
	}
	return a.String()
}

// matchesSystemDatabase reports whether a name, or a pattern, matches one of the server's own databases.
func matchesSystemDatabase(name string, isPattern bool) bool {
	return slices.ContainsFunc(systemDatabases, func(system string) bool {
		if isPattern {
			return matches(strings.ToLower(name), system)
		}
		return strings.EqualFold(name, system)
	})
}

// matches reports whether a pattern of the server, with % and _ and \ before a literal one, matches a name.
func matches(pattern, name string) bool {
	var expression strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '%':
			expression.WriteString(".*")
		case '_':
			expression.WriteString(".")
		default:
			if pattern[i] == '\\' && i+1 < len(pattern) {
				i++
			}
			expression.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	found, err := regexp.MatchString("^(?:"+expression.String()+")$", name)
	return found || err != nil // such as a name that is not ASCII: the server's own are
}
