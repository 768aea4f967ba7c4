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

// shared starts the server of the tests that neither stop it nor read its log.
var shared = sync.OnceValues(func() (*mariadb.Server, error) { return mariadb.Start(context.Background()) })

func sharedServer(t testing.TB) *mariadb.Server {
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

// database is a server with root access.
type database struct {
	*mariadb.Server
	root *sql.DB
}

func open(t *testing.T, s *mariadb.Server) *database {
	t.Helper()
	root := s.OpenRoot()
	t.Cleanup(func() { _ = root.Close() }) // it may fail for a connection that the server has closed
	return &database{s, root}
}

func (d *database) execute(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := d.root.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

// disconnect ends all connections of a user of the server. Statements that the server has not begun are not done.
func (d *database) disconnect(t *testing.T, user string) {
	t.Helper()
	d.execute(t, "KILL USER `"+user+"`")
	operatortest.Eventually(t, "the user has no connection", func(c *assert.CollectT) {
		assert.Empty(c, d.lines(c, "SELECT id FROM information_schema.processlist WHERE user = ?", user))
	})
}

// lines returns the first column of the rows of a query.
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

// accounts returns the accounts of the tenant as user@host, by the suffix of their names.
func (d *database) accounts(t require.TestingT, n *tenant) []string {
	return d.lines(t, "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE User LIKE ? ORDER BY 1", "%"+n.suffix)
}

// grants returns the grants of an account in the server's words, without the first line, which is for the account itself.
func (d *database) grants(t require.TestingT, user, host string) []string {
	return d.lines(t, "SHOW GRANTS FOR `"+user+"`@`"+host+"`")[1:]
}

// login logs in, and returns an error if that fails.
func (d *database) login(user, password string) error {
	ctx, cancel := context.WithTimeout(context.Background(), operatortest.Patience)
	defer cancel()
	return d.CanLogIn(ctx, mariadb.Credentials{User: user, Password: password})
}
