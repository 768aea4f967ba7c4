package accounts

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
)

// leftover is a row of a table of the server that grants something, although SHOW GRANTS does not list it. The server reads these
// tables when it starts and at FLUSH PRIVILEGES, and does not ask whether the account of a row exists. Such rows are left of
// accounts that were deleted from the table of accounts only, or were written by hand.
type leftover struct {
	holder Account
	table  string // such as mysql.db
	grant  grantLine
}

// readLeftovers returns the rows that may hold for an account, although no account has them. Each query has a timeout of its own.
func (c *Client) readLeftovers(ctx context.Context, a Account, isMariaDB bool) ([]leftover, error) {
	var all []leftover
	for _, table := range []string{"mysql.db", "mysql.tables_priv", "mysql.procs_priv", "mysql.proxies_priv"} {
		found, err := c.rows(ctx, table, selectLeftovers(table), a.User)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if !isMariaDB { // MySQL stores roles elsewhere
		return all, nil
	}
	found, err := c.rows(ctx, "mysql.roles_mapping", selectRolesMapping, a.User, a.Host)
	return append(all, found...), err
}

func (c *Client) rows(ctx context.Context, table, query string, args ...any) (all []leftover, err error) {
	err = c.do(ctx, func(ctx context.Context) error {
		all, err = c.readRows(ctx, table, query, args...)
		return err
	})
	return all, err
}

func (c *Client) readRows(ctx context.Context, table, query string, args ...any) ([]leftover, error) {
	rows, err := c.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var all []leftover
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, column := range columns {
			row[column] = values[i].String
		}
		all = append(all, leftover{Account{row["User"], row["Host"]}, table, grantOf(row)})
	}
	return all, rows.Err()
}

// grantOf returns what a row grants, by the names of its columns. A privilege is a column with the value Y in mysql.db, and a
// member of a set elsewhere. Those that only a later server has are returned, too.
func grantOf(row map[string]string) grantLine {
	if role, ok := row["Role"]; ok {
		return grantLine{role: role}
	}
	if _, ok := row["Proxied_user"]; ok {
		return grantLine{privileges: []string{"PROXY"}}
	}
	g := grantLine{database: row["Db"], quoted: true, object: row["Table_name"] + row["Routine_name"]}
	if g.object == "" {
		g.object = "*"
	}
	for _, column := range slices.Sorted(maps.Keys(row)) {
		name, isPrivilege := strings.CutSuffix(column, "_priv")
		members := strings.Split(row[column], ",")
		switch {
		case !isPrivilege || row[column] == "" || row[column] == "N":
			continue
		case row[column] == "Y":
			members = []string{strings.ReplaceAll(name, "_", " ")}
		}
		for _, member := range members {
			if name := privilegeNamed(member); name == grantOption {
				g.grantable = true
			} else {
				g.privileges = append(g.privileges, name)
			}
		}
	}
	return g
}

const grantOption = "GRANT OPTION"

// privilegeNamed returns the privilege that a table calls by a name of its own.
func privilegeNamed(stored string) string {
	stored = strings.ToUpper(stored)
	renamed := map[string]string{
		"GRANT": grantOption, "CREATE TMP TABLE": "CREATE TEMPORARY TABLES", "DELETE VERSIONING ROWS": "DELETE HISTORY",
	}
	if name, ok := renamed[stored]; ok {
		return name
	}
	return stored
}
