package test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// shared is the server of the tests that neither stop it nor read its log.
var shared = sync.OnceValues(func() (*mariadb.Server, error) { return mariadb.Start(context.Background()) })

func sharedServer(t *testing.T) *mariadb.Server {
	t.Helper()
	s, err := shared()
	require.NoError(t, err)
	return s
}

func startServer(t *testing.T, options ...mariadb.Option) *mariadb.Server {
	t.Helper()
	s, err := mariadb.Start(t.Context(), options...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

// database is a server as its owner sees it.
type database struct {
	*mariadb.Server
	root *sql.DB
}

func open(t *testing.T, s *mariadb.Server) *database {
	t.Helper()
	root := s.OpenRoot()
	t.Cleanup(func() { _ = root.Close() }) // which may tell of a connection that the server has ended
	return &database{s, root}
}

func (d *database) execute(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := d.root.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

// lines gives the first column of what a query finds.
func (d *database) lines(t require.TestingT, query string, args ...any) []string {
	rows, err := d.root.QueryContext(context.Background(), query, args...)
	require.NoError(t, err, query)
	defer rows.Close()
	all := []string{}
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}

// accounts gives the accounts whose names end as the tenant's do, as user@host.
func (d *database) accounts(t require.TestingT, n *tenant) []string {
	return d.lines(t, "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE User LIKE ? ORDER BY 1", "%"+n.suffix)
}

// grants gives what an account may do, in the server's words, but for what it says of the account itself.
func (d *database) grants(t require.TestingT, user, host string) []string {
	return d.lines(t, "SHOW GRANTS FOR `"+user+"`@`"+host+"`")[1:]
}

// login tries a password.
func (d *database) login(user, password string) error {
	ctx, cancel := context.WithTimeout(context.Background(), operatortest.Patience)
	defer cancel()
	return d.CanLogIn(ctx, mariadb.Credentials{User: user, Password: password})
}
