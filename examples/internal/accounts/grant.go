package accounts

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxNameLength = 64 // the longest name of a database or table, in characters

// Grant is a list of privileges in a database, or in one of its tables.
type Grant struct {
	Database   string
	Table      string   // empty for all tables
	Privileges []string // from [Privileges], or All
}

// String returns the grant in SQL-like words, for messages.
func (g Grant) String() string {
	return strings.Join(g.Privileges, ", ") + " on " + g.on()
}

func (g Grant) on() string { return g.Database + "." + cmp.Or(g.Table, "*") }

// systemDatabases belong to the server; who may write to one of them can take over the server.
var systemDatabases = []string{"mysql", "information_schema", "performance_schema", "sys"}

// Validate returns an [*InvalidError] if the grant is not possible.
func (g Grant) Validate() error {
	allowed := Privileges(g.Table != "")
	switch {
	case g.Database == "":
		return invalid("database", "is empty")
	case slices.Contains(systemDatabases, strings.ToLower(g.Database)):
		return invalid("database", "is %s, which belongs to the server", g.Database)
	case strings.HasPrefix(g.Database, "#mysql50#"):
		return invalid("database", "begins with #mysql50#, by which the server names a folder")
	case utf8.RuneCountInString(pattern(g.Database)) > maxNameLength && g.Table == "":
		return invalid("database", "is longer than %d characters, where each of %% _ \\ counts twice", maxNameLength)
	case utf8.RuneCountInString(g.Database) > maxNameLength:
		return invalid("database", "is longer than %d characters", maxNameLength)
	case utf8.RuneCountInString(g.Table) > maxNameLength:
		return invalid("table", "is longer than %d characters", maxNameLength)
	case len(g.Privileges) == 0:
		return invalid("privileges", "are empty")
	}
	for _, p := range g.Privileges {
		switch {
		case p == All, slices.Contains(allowed, p):
		case slices.Contains(Privileges(false), p):
			return invalid("privileges", "have %s among them, which cannot be granted on a table", p)
		default:
			return invalid("privileges", "have one among them that cannot be granted here; there are %s", strings.Join(Privileges(false), ", "))
		}
	}
	if err := validateName("database", g.Database); err != nil {
		return err
	}
	return validateName("table", g.Table)
}

// Normalize returns the same grants in a canonical form: one for each database or table, sorted, with all privileges listed in
// the server's order. [Database.Lookup] returns grants in this form.
func Normalize(grants []Grant) []Grant {
	return collect(grants, func(Grant, string) bool { return true })
}

// Subtract returns what a grants and b does not, normalized.
func Subtract(a, b []Grant) []Grant {
	has := index(b)
	return collect(a, func(g Grant, p string) bool { return !has[key{g.Database, g.Table}][p] })
}

type key struct{ database, table string }

// index returns the privileges by database and table.
func index(grants []Grant) map[key]map[string]bool {
	all := map[key]map[string]bool{}
	for _, g := range grants {
		k := key{g.Database, g.Table}
		if all[k] == nil {
			all[k] = map[string]bool{}
		}
		for _, p := range g.Privileges {
			if p != All {
				all[k][p] = true
				continue
			}
			for _, p := range Privileges(g.Table != "") {
				all[k][p] = true
			}
		}
	}
	return all
}

func collect(grants []Grant, keep func(Grant, string) bool) []Grant {
	var kept []Grant
	for k, has := range index(grants) {
		g := Grant{Database: k.database, Table: k.table}
		for _, p := range Privileges(false) {
			if has[p] && keep(g, p) {
				g.Privileges = append(g.Privileges, p)
			}
		}
		if len(g.Privileges) > 0 {
			kept = append(kept, g)
		}
	}
	slices.SortFunc(kept, func(a, b Grant) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.Table, b.Table))
	})
	return kept
}

func lower(grants []Grant) []Grant {
	folded := slices.Clone(grants)
	for i := range folded {
		folded[i].Database, folded[i].Table = strings.ToLower(folded[i].Database), strings.ToLower(folded[i].Table)
	}
	return folded
}
