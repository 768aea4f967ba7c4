package accounts_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/accounts/accountstest"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

// TestDatabase runs the same calls on the fake and on a server.
func TestDatabase(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		s := sharedServer(t)
		execute(t, openRoot(t, s), "CREATE DATABASE IF NOT EXISTS shop", "CREATE TABLE IF NOT EXISTS shop.items (id INT)")
		testDatabase(t, connect(t, s))
	})
	t.Run("fake", func(t *testing.T) { testDatabase(t, &accountstest.Database{}) })
}

func testDatabase(t *testing.T, db accounts.Database) {
	ctx := t.Context()
	a := accounts.Account{User: "contract", Host: "%"}
	settings := accounts.Settings{
		Require: accounts.RequireX509,
		Limits:  accounts.Limits{MaxUserConnections: 1, MaxConnectionsPerHour: 2, MaxQueriesPerHour: 3, MaxUpdatesPerHour: 4},
	}
	lookup := func() *accounts.State {
		t.Helper()
		s, err := db.Lookup(ctx, a)
		require.NoError(t, err)
		return s
	}

	assert.Nil(t, lookup())
	assert.ErrorIs(t, db.SetPassword(ctx, a, "x"), accounts.ErrNotFound)
	assert.ErrorIs(t, db.SetSettings(ctx, a, settings), accounts.ErrNotFound)
	assert.ErrorIs(t, db.Grant(ctx, a, accounts.Grant{Database: "shop", Privileges: []string{"SELECT"}}), accounts.ErrNotFound)
	assert.NoError(t, db.Revoke(ctx, a, accounts.Grant{Database: "shop", Privileges: []string{"SELECT"}}))
	assert.NoError(t, db.Drop(ctx, a), "gone already")

	require.NoError(t, db.Create(ctx, a, "first", settings))
	created := lookup()
	assert.Equal(t, settings, created.Settings)
	assert.False(t, created.Locked)
	powers, err := db.Powers(ctx, a)
	require.NoError(t, err)
	assert.Empty(t, powers)
	assert.Empty(t, created.Grants)
	assert.ErrorIs(t, db.Create(ctx, a, "second", settings), accounts.ErrExists)
	assert.Equal(t, created, lookup(), "which changed nothing")
	for _, other := range []accounts.Account{{User: "Contract", Host: "%"}, {User: "contract", Host: "_"}, {User: "contrac_", Host: "%"}} {
		s, err := db.Lookup(ctx, other)
		assert.NoError(t, err)
		assert.Nil(t, s, other)
	}

	require.NoError(t, db.SetPassword(ctx, a, "second"))
	second := lookup()
	assert.NotEqual(t, created.Fingerprint, second.Fingerprint)
	require.NoError(t, db.SetPassword(ctx, a, "second"))
	assert.Equal(t, second, lookup(), "the same password again; the settings are kept")
	require.NoError(t, db.SetSettings(ctx, a, accounts.Settings{}))
	assert.Equal(t, accounts.Settings{Require: accounts.RequireNone}, lookup().Settings)
	assert.Equal(t, second.Fingerprint, lookup().Fingerprint)

	grants := []accounts.Grant{
		{Database: "shop", Privileges: []string{"DELETE", "SELECT"}},
		{Database: "shop", Table: "items", Privileges: []string{"INSERT"}},
		{Database: "other_shop", Privileges: []string{accounts.All}},
	}
	for _, g := range grants {
		require.NoError(t, db.Grant(ctx, a, g))
		require.NoError(t, db.Grant(ctx, a, g), "again")
	}
	assert.Equal(t, accounts.Normalize(grants), lookup().Grants)
	assert.Empty(t, lookup().Missing(grants))
	require.NoError(t, db.Revoke(ctx, a, accounts.Grant{Database: "shop", Privileges: []string{"DELETE", "UPDATE"}}))
	require.NoError(t, db.Revoke(ctx, a, grants[1]))
	require.NoError(t, db.Revoke(ctx, a, grants[1]), "again")
	require.NoError(t, db.Revoke(ctx, a, grants[2]))
	assert.Equal(t, []accounts.Grant{{Database: "shop", Privileges: []string{"SELECT"}}}, lookup().Grants)
	assert.Equal(t, []accounts.Grant{{Database: "shop", Table: "items", Privileges: []string{"INSERT"}}}, lookup().Missing(grants[1:2]))

	require.NoError(t, db.Drop(ctx, a))
	assert.Nil(t, lookup())

	settings.Mark = "DatabaseUser 1-2-3"
	require.NoError(t, db.Create(ctx, a, "first", settings))
	assert.Equal(t, settings.Mark, lookup().Mark)
	assert.Equal(t, settings.Limits, lookup().Limits)
	assert.NotEqual(t, settings.Require, lookup().Require, "the mark is in its place")
	require.NoError(t, db.SetPassword(ctx, a, "second"))
	assert.Equal(t, settings.Mark, lookup().Mark, "it stays until the settings are set")
	settings.Mark = ""
	require.NoError(t, db.SetSettings(ctx, a, settings))
	assert.Equal(t, settings, lookup().Settings, "the mark is gone")
	require.NoError(t, db.Drop(ctx, a))
}

// TestMarked checks that nobody can log in to an account while it has a mark, not even with TLS and a certificate.
func TestMarked(t *testing.T) {
	s := sharedServer(t)
	c := connect(t, s)
	a := accounts.Account{User: "marked", Host: "%"}
	require.NoError(t, c.Create(t.Context(), a, "secret", accounts.Settings{Mark: "DatabaseUser 1-2-3"}))
	defer func() { assert.NoError(t, c.Drop(t.Context(), a)) }()
	config := s.Login(mariadb.Credentials{User: a.User, Password: "secret"})
	assert.ErrorContains(t, canConnect(t, config), "Access denied")
	var err error
	config.TLS, err = s.ClientTLS(true)
	require.NoError(t, err)
	assert.ErrorContains(t, canConnect(t, config), "Access denied")
	powers, err := c.Powers(t.Context(), a)
	require.NoError(t, err)
	assert.Empty(t, powers)
	require.NoError(t, c.SetSettings(t.Context(), a, accounts.Settings{}))
	assert.NoError(t, canConnect(t, config))
}

// TestGrantIsForOneDatabase checks that a grant covers its database, and not others that match its name as a pattern.
func TestGrantIsForOneDatabase(t *testing.T) {
	s := sharedServer(t)
	root, c := openRoot(t, s), connect(t, s)
	execute(t, root, "CREATE DATABASE a_b", "CREATE DATABASE axb", "CREATE DATABASE `a%b`", "CREATE DATABASE `a\\b`", "CREATE DATABASE `a``b``.*`",
		"CREATE DATABASE `A_b`", "CREATE DATABASE `a\\_b`")
	databases := []string{"a_b", "axb", "a%b", `a\b`, "a`b`.*", "A_b", `a\_b`}
	t.Cleanup(func() {
		for _, d := range []string{"a_b", "axb", "a%b", `a\b`, "a``b``.*", "A_b", `a\_b`} {
			_, err := root.Exec("DROP DATABASE `" + d + "`")
			assert.NoError(t, err)
		}
	})
	for i, granted := range databases {
		t.Run(granted, func(t *testing.T) {
			a := accounts.Account{User: fmt.Sprint("reader-", i), Host: "%"}
			require.NoError(t, c.Create(t.Context(), a, "secret", accounts.Settings{}))
			defer func() { assert.NoError(t, c.Drop(t.Context(), a)) }()
			g := accounts.Grant{Database: granted, Privileges: []string{"SELECT"}}
			require.NoError(t, c.Grant(t.Context(), a, g))
			for _, d := range databases {
				config := s.Login(mariadb.Credentials{User: a.User, Password: "secret"})
				config.DBName = d
				assert.Equal(t, d == granted, canConnect(t, config) == nil, d)
			}
			state, err := c.Lookup(t.Context(), a)
			require.NoError(t, err)
			assert.Equal(t, []accounts.Grant{g}, state.Grants)
		})
	}
}

func TestSomebodyElsesGrantsAreNotSeen(t *testing.T) {
	s := sharedServer(t)
	root, c := openRoot(t, s), connect(t, s)
	a := accounts.Account{User: "shared", Host: "%"}
	require.NoError(t, c.Create(t.Context(), a, "secret", accounts.Settings{}))
	execute(t, root, "GRANT SELECT ON `app_%`.* TO shared", "GRANT PROCESS ON *.* TO shared", "GRANT USAGE ON shop2.* TO shared REQUIRE ISSUER 'me'")
	state, err := c.Lookup(t.Context(), a)
	require.NoError(t, err)
	assert.Empty(t, state.Grants)
	powers, err := c.Powers(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, []string{"PROCESS on *.*"}, powers, "one on the server as a whole")
	assert.EqualValues(t, "specified", state.Require, "none of ours, so that it differs from what is wanted")
	require.NoError(t, c.Drop(t.Context(), a))
}

func TestRequire(t *testing.T) {
	s := sharedServer(t)
	c := connect(t, s)
	tests := map[accounts.Require]struct{ plain, ssl, x509 bool }{
		accounts.RequireNone: {true, true, true},
		accounts.RequireSSL:  {false, true, true},
		accounts.RequireX509: {false, false, true},
	}
	for require509, want := range tests {
		t.Run(string(require509), func(t *testing.T) {
			a := accounts.Account{User: "secure", Host: "%"}
			require.NoError(t, c.Create(t.Context(), a, "secret", accounts.Settings{Require: require509}))
			defer func() { assert.NoError(t, c.Drop(t.Context(), a)) }()
			config := s.Login(mariadb.Credentials{User: a.User, Password: "secret"})
			assert.Equal(t, want.plain, canConnect(t, config) == nil)
			var err error
			config.TLS, err = s.ClientTLS(false)
			require.NoError(t, err)
			assert.Equal(t, want.ssl, canConnect(t, config) == nil)
			config.TLS, err = s.ClientTLS(true)
			require.NoError(t, err)
			assert.Equal(t, want.x509, canConnect(t, config) == nil)
		})
	}
}

func TestLimits(t *testing.T) {
	s := sharedServer(t)
	c := connect(t, s)
	a := accounts.Account{User: "limited", Host: "%"}
	require.NoError(t, c.Create(t.Context(), a, "secret", accounts.Settings{Limits: accounts.Limits{MaxConnectionsPerHour: 1}}))
	defer func() { assert.NoError(t, c.Drop(t.Context(), a)) }()
	login := mariadb.Credentials{User: a.User, Password: "secret"}
	assert.NoError(t, s.CanLogIn(t.Context(), login))
	assert.ErrorContains(t, s.CanLogIn(t.Context(), login), "max_connections_per_hour")
}

// TestNamesIgnoreCase checks that a resync finds no difference on a server that stores the name Shop as shop.
func TestNamesIgnoreCase(t *testing.T) {
	s := startServer(t, mariadb.WithArgs("--lower-case-table-names=1"))
	c := connect(t, s)
	a := accounts.Account{User: "folded", Host: "%"}
	want := []accounts.Grant{{Database: "Shop", Privileges: []string{"SELECT"}}}
	require.NoError(t, c.Create(t.Context(), a, "secret", accounts.Settings{}))
	require.NoError(t, c.Grant(t.Context(), a, want[0]))
	state, err := c.Lookup(t.Context(), a)
	require.NoError(t, err)
	assert.True(t, state.NamesIgnoreCase)
	assert.Empty(t, state.Missing(want))
	require.NoError(t, c.Revoke(t.Context(), a, want[0]))
	state, err = c.Lookup(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, []accounts.Grant{{Database: "shop", Privileges: []string{"SELECT"}}}, state.Missing(want))
}

func TestPasswordsPrintAsHidden(t *testing.T) {
	const canary = "canary-9f2c"
	f := accounts.NewFingerprint("mysql_native_password", canary)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.NotContains(t, fmt.Sprintf(verb, accounts.Password(canary)), canary, verb)
		assert.NotContains(t, fmt.Sprintf(verb, accounts.State{Fingerprint: f}), canary, verb)
		assert.NotContains(t, fmt.Sprintf(verb, []any{f, &f}), canary, verb)
	}
	text, err := json.Marshal(map[string]any{"password": accounts.Password(canary), "state": accounts.State{Fingerprint: f}})
	assert.NoError(t, err)
	assert.NotContains(t, string(text), canary)
}
