package accounts_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

// shared starts the server of the tests that leave it unchanged.
var shared = sync.OnceValues(func() (*mariadb.Server, error) {
	return mariadb.Start(context.Background(), mariadb.WithTLS())
})

func sharedServer(t *testing.T) *mariadb.Server {
	t.Helper()
	skipIfShort(t)
	s, err := shared()
	require.NoError(t, err)
	return s
}

func startServer(t *testing.T, options ...mariadb.Option) *mariadb.Server {
	t.Helper()
	skipIfShort(t)
	s, err := mariadb.Start(t.Context(), options...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real MariaDB; run without -short")
	}
}

const patience = 5 * time.Minute // the machine may be busy

// withoutPauses is a clock by which the pause of a breaker is over at each call.
func withoutPauses() func() time.Time {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Hour)
		return now
	}
}

// options returns the client options for the operator's account.
func options(s *mariadb.Server) accounts.Options {
	return accounts.Options{
		Address:  s.Address(),
		User:     s.Admin().User,
		Password: func() (string, error) { return s.Admin().Password, nil },
		Timeout:  patience, ConnectTimeout: patience,
	}
}

func connect(t *testing.T, s *mariadb.Server, change ...func(*accounts.Options)) *accounts.Client {
	t.Helper()
	o := options(s)
	for _, c := range change {
		c(&o)
	}
	c, err := accounts.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func openRoot(t *testing.T, s *mariadb.Server) *sql.DB {
	t.Helper()
	root := s.OpenRoot()
	t.Cleanup(func() { assert.NoError(t, root.Close()) })
	return root
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func canConnect(t *testing.T, config *mysql.Config) error {
	t.Helper()
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	connection, err := connector.Connect(t.Context())
	if err != nil {
		return err
	}
	return connection.Close()
}
