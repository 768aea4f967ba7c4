//go:build !race

// The attacks follow one another, so the race detector finds nothing in them, and would take several times as long.

package accounts_test

import (
	"bytes"
	"crypto/sha1"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

const (
	attempts = 10500
	together = 100 // accounts on the server at the same time
)

// TestAttacks tries hostile names and passwords. Each attempt creates exactly the account and the grant that it names, with
// that password, or is refused before any statement; and no other statement runs. The client sets the mode of its sessions, whatever the
// server's is, so servers with another mode get a part of the attempts.
func TestAttacks(t *testing.T) {
	servers := map[string][]mariadb.Option{
		"default":              nil,
		"ANSI_QUOTES":          {mariadb.WithSQLMode("ANSI_QUOTES")},
		"NO_BACKSLASH_ESCAPES": {mariadb.WithSQLMode("NO_BACKSLASH_ESCAPES")},
		"GBK":                  {mariadb.WithArgs("--character-set-server=gbk", "--skip-character-set-client-handshake")},
	}
	for name, options := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, append(options, mariadb.WithGeneralLog())...)
			b := newSiege(t, s, connect(t, s))
			b.inspect = func(there []attempt) {
				b.lookup(there)
				if name == "GBK" { // where a client has to send its user's name in GBK
					there = slices.DeleteFunc(slices.Clone(there), func(a attempt) bool { return strings.ContainsFunc(a.account.User, notASCII) })
				}
				b.logIn(there)
			}
			all := corpus(attempts)
			if name != "default" {
				pure := 2 * len(fragments) // the fragments that are not mixed
				all = append(all[:pure:pure], every(5, all[pure:])...)
			}
			b.run(all)
			assert.Greater(b, b.loggedIn, len(all)/10)
		})
	}
}

// TestNamesInEveryMode tries the hostile names in sessions that keep the server's mode: how names are quoted must not
// depend on it.
func TestNamesInEveryMode(t *testing.T) {
	for _, mode := range []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, mariadb.WithSQLMode(mode), mariadb.WithGeneralLog())
			b := newSiege(t, s, connectInServersMode(t, s))
			b.inspect = func([]attempt) {}
			all := every(7, corpus(attempts))
			for i := range all {
				all[i].password = fmt.Sprint("password-", i)
			}
			b.run(all)
		})
	}
}

// every returns each nth attempt. An odd n selects some of each kind: there are eight kinds, which alternate.
func every(n int, all []attempt) (some []attempt) {
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

func notASCII(r rune) bool { return r > 0x7F }

func connectInServersMode(t *testing.T, s *mariadb.Server) *accounts.Client {
	c, err := accounts.NewInServersMode(options(s))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// siege is a number of attempts on one server, over one connection.
type siege struct {
	*testing.T
	server *mariadb.Server
	root   *sql.DB
	client *accounts.Client

	inspect func([]attempt) // the accounts, while they are there
	before  []string        // rows there from the beginning
	log     int64           // how much of the general log was compared

	created, granted, refusedAccounts, refusedGrants, looked, loggedIn int
}

func newSiege(t *testing.T, s *mariadb.Server, c *accounts.Client) *siege {
	b := &siege{T: t, server: s, root: openRoot(t, s), client: c}
	require.NoError(t, c.Ping(t.Context()))
	b.before = b.rows()
	return b
}

func (b *siege) run(all []attempt) {
	began := time.Now()
	for some := range slices.Chunk(all, together) {
		b.attack(some)
	}
	b.Logf("%d tried in %.1f s: %d accounts created, %d refused; %d databases granted, %d refused; %d logins tried, all let in; %d looked up",
		len(all), time.Since(began).Seconds(), b.created, b.refusedAccounts, b.granted, b.refusedGrants, b.loggedIn, b.looked)
	assert.Greater(b, b.created, len(all)/3, "the corpus is not just refused")
	assert.Greater(b, b.refusedAccounts, len(all)/50, "nor is it harmless")
	assert.Greater(b, b.refusedGrants, len(all)/50)
}

func (b *siege) attack(some []attempt) {
	var statements, drops []string
	want := slices.Clone(b.before)
	var there []attempt
	b.startLog()
	for _, a := range some {
		password, g := accounts.Password(a.password), accounts.Grant{Database: a.database, Privileges: []string{"SELECT"}}
		create, grant, drop := accounts.Statements(a.account, password, g)
		if !b.refused(a, b.client.Create(b.Context(), a.account, password, accounts.Settings{})) {
			b.created++
			there = append(there, a)
			statements, drops = append(statements, create), append(drops, drop)
			want = append(want, accountRow(a))
		} else {
			b.refusedAccounts++
			continue
		}
		if !b.refused(a, b.client.Grant(b.Context(), a.account, g)) {
			b.granted++
			statements = append(statements, grant)
			want = append(want, grantRow(a))
		} else {
			b.refusedGrants++
		}
	}
	b.compareLog(statements)
	slices.Sort(want)
	require.Equal(b, want, b.rows(), "these accounts and grants, and no others")
	b.inspect(there)

	b.startLog()
	for _, a := range there {
		require.NoError(b, b.client.Drop(b.Context(), a.account))
	}
	b.compareLog(drops)
	require.Equal(b, b.before, b.rows(), "nothing is left")
}

// refused checks that an attempt is refused before any statement, and not by the server.
func (b *siege) refused(a attempt, err error) bool {
	var invalid *accounts.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		require.NoError(b, err, "%q", a)
	}
	return err != nil
}

// rows returns all accounts, with their stored passwords, and all grants. Names are in hexadecimal, so that no collation of the
// server hides a difference.
func (b *siege) rows() []string {
	var found []string
	for _, query := range []string{
		"SELECT HEX(User), HEX(Host), HEX(authentication_string), is_role FROM mysql.user",
		"SELECT HEX(User), HEX(Host), HEX(Db), 'grant' FROM mysql.db",
		"SELECT HEX(User), HEX(Host), HEX(Db), 'table' FROM mysql.tables_priv",
		"SELECT HEX(User), HEX(Host), HEX(Role), 'role' FROM mysql.roles_mapping",
	} {
		rows, err := b.root.QueryContext(b.Context(), query)
		require.NoError(b, err)
		for rows.Next() {
			var user, host, what, kind string
			require.NoError(b, rows.Scan(&user, &host, &what, &kind))
			found = append(found, fmt.Sprint(user, "@", host, " ", what, " ", kind))
		}
		require.NoError(b, rows.Err())
		require.NoError(b, rows.Close())
	}
	slices.Sort(found)
	return found
}

// accountRow returns the row of an account, with the password as mysql_native_password stores it.
func accountRow(a attempt) string {
	once := sha1.Sum([]byte(a.password))
	return fmt.Sprintf("%X@%X %X N", a.account.User, a.account.Host, fmt.Sprintf("*%X", sha1.Sum(once[:])))
}

func grantRow(a attempt) string {
	return fmt.Sprintf("%X@%X %X grant", a.account.User, a.account.Host, accounts.Pattern(a.database))
}

// lookup reads some accounts back: parameters find what literals created, and none has powers.
func (b *siege) lookup(there []attempt) {
	for _, a := range there[:len(there)/5] {
		b.looked++
		state, err := b.client.Lookup(b.Context(), a.account)
		require.NoError(b, err)
		require.NotNil(b, state, "%q", a.account)
		for _, g := range state.Grants {
			assert.Equal(b, accounts.Grant{Database: a.database, Privileges: []string{"SELECT"}}, g)
		}
		powers, err := b.client.Powers(b.Context(), a.account)
		require.NoError(b, err)
		assert.Empty(b, powers, "%q", a.account)
	}
}

// logIn logs in as every account that accepts logins from 127.0.0.1.
func (b *siege) logIn(there []attempt) {
	for _, a := range there {
		if slices.Contains(hosts[:5], a.account.Host) {
			b.loggedIn++
			assert.NoError(b, b.server.CanLogIn(b.Context(), mariadb.Credentials{User: a.account.User, Password: a.password}), "%q", a)
		}
	}
}

// startLog turns the server's log on. Statements of the test as root are not logged: see mariadb.OpenRoot.
func (b *siege) startLog() {
	execute(b.T, b.root, "SET GLOBAL general_log = ON")
	info, err := os.Stat(b.server.GeneralLog())
	require.NoError(b, err)
	b.log = info.Size()
}

var (
	// entry is how a statement begins in the log; the time is there when it is another than before.
	entry = regexp.MustCompile(`^(\d{6} [ \d]\d:\d\d:\d\d\t|\t\t) *\d+ Query\t`)
	// ends are the ends of earlier logins and prepared statements. The server does not answer them, so it may log them later.
	ends = regexp.MustCompile(`^((\d{6} [ \d]\d:\d\d:\d\d\t|\t\t) *\d+ (Quit|Close stmt)\t\n)*`)
)

// compareLog checks that the server ran exactly these statements, byte for byte.
func (b *siege) compareLog(statements []string) {
	execute(b.T, b.root, "SET GLOBAL general_log = OFF")
	file, err := os.Open(b.server.GeneralLog())
	require.NoError(b, err)
	defer file.Close()
	log, err := io.ReadAll(io.NewSectionReader(file, b.log, math.MaxInt64-b.log))
	require.NoError(b, err)
	for _, statement := range statements {
		log = log[len(ends.Find(log)):]
		begin := entry.Find(log)
		require.NotNil(b, begin, "no query is logged where %q should be: %.200q", statement, log)
		log = log[len(begin):]
		require.True(b, bytes.HasPrefix(log, []byte(statement+"\n")), "%q was run instead of %q", log[:min(len(log), 200)], statement)
		log = log[len(statement)+1:]
	}
	require.Empty(b, string(ends.ReplaceAll(log, nil)), "more was run")
}
