package mariadb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

// Credentials of an account in the database.
type Credentials struct{ User, Password string }

func newPassword() string { return rand.Text() }

// privileges are what the operator's account needs: to create and drop accounts, to read them, and to have itself what it
// grants. No global privilege is grantable. Here the last line is for every database, since tests create databases of any name;
// in production it lists the databases that the operator is for, such as `app\_%`, and not the server's own.
var privileges = []string{
	"CREATE USER ON *.* TO %s",
	"SELECT ON mysql.* TO %s",
	"SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, " +
		"CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER ON `%%`.* TO %s WITH GRANT OPTION",
}

func (s *Server) createAdmin(ctx context.Context) error {
	root := s.OpenRoot()
	defer root.Close()
	if err := dropOpenAccounts(ctx, root); err != nil {
		return err
	}
	account := "`" + s.admin.User + "`@`127.0.0.1`"
	if _, err := root.ExecContext(ctx, fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", account, s.admin.Password)); err != nil {
		return err
	}
	for _, privilege := range privileges {
		if _, err := root.ExecContext(ctx, "GRANT "+fmt.Sprintf(privilege, account)); err != nil {
			return err
		}
	}
	return nil
}

// dropOpenAccounts drops the accounts without a password that mariadb-install-db creates for TCP. The others are only for the
// socket.
func dropOpenAccounts(ctx context.Context, root *sql.DB) error {
	var accounts sql.NullString
	err := root.QueryRowContext(ctx, "SELECT GROUP_CONCAT(QUOTE(User), '@', QUOTE(Host)) FROM mysql.user WHERE Host <> 'localhost'").Scan(&accounts)
	if err != nil || !accounts.Valid {
		return err
	}
	_, err = root.ExecContext(ctx, "DROP USER "+accounts.String)
	return err
}

// Admin returns the credentials of the operator's account at [Server.Address]. It has the least privileges that the operator
// needs.
func (s *Server) Admin() Credentials { return s.admin }

// OpenRoot returns a client with the account root. It uses the socket, which no other user of this machine can reach. Its
// statements do not appear in the general log.
func (s *Server) OpenRoot() *sql.DB {
	config := s.Login(Credentials{User: "root"})
	config.Net, config.Addr = "unix", s.Socket()
	config.Params = map[string]string{"sql_log_off": "1"}
	return open(config)
}

// Login returns a configuration to log in over TCP, without TLS.
func (s *Server) Login(c Credentials) *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.Passwd = c.User, c.Password
	config.Net, config.Addr = "tcp", s.Address()
	config.Logger = &mysql.NopLogger{} // errors come back from the calls as well
	return config
}

// CanLogIn logs in over TCP, and returns an error if that fails.
func (s *Server) CanLogIn(ctx context.Context, c Credentials) error {
	db := open(s.Login(c))
	defer db.Close()
	return db.PingContext(ctx)
}

func open(config *mysql.Config) *sql.DB {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		panic(err) // the configuration is our own
	}
	return sql.OpenDB(connector)
}
