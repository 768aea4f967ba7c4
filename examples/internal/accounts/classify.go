package accounts

import (
	"context"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The server's error numbers, the same on MariaDB and MySQL.
const (
	accessDeniedToDatabase = 1044
	shutdown               = 1053
	noSuchUser             = 1133
	noSuchGrant            = 1141
	accessDeniedToTable    = 1142
	noSuchTableGrant       = 1147
	privilegeNeeded        = 1227
	readOnly               = 1290
	cannotUser             = 1396 // CREATE USER: the account exists; ALTER USER: it does not
	nameTooLong            = 1470
	weakPassword           = 1819
	readOnlyTransaction    = 1792
	killed                 = 1927
)

// withoutPasswords are errors whose text contains nothing but names. A syntax error, in contrast, quotes the statement.
var withoutPasswords = []uint16{accessDeniedToDatabase, noSuchUser, noSuchGrant, accessDeniedToTable, noSuchTableGrant, privilegeNeeded,
	readOnly, cannotUser, nameTooLong, weakPassword, readOnlyTransaction}

// do calls a function with a timeout and classifies its error, unless the breaker is open. Errors of the caller's own context
// are returned unchanged.
func (c *Client) do(ctx context.Context, call func(context.Context) error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return c.breaker.call(func() error { return c.ask(ctx, call) })
}

func (c *Client) ask(ctx context.Context, call func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	err := call(bounded)
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var before *beforeError
	var server *mysql.MySQLError
	if !errors.As(err, &before) && errors.As(err, &server) && server.Number != shutdown && server.Number != killed {
		return refusal(server)
	}
	return &UnreachableError{Address: c.options.Address, Reason: c.reason(err), Err: err}
}

func refusal(e *mysql.MySQLError) error {
	return &StatementError{Number: e.Number, State: string(e.SQLState[:]), Message: e.Message}
}

// withoutText removes the text of an error that might contain a password.
func withoutText(err error) error {
	var r *StatementError
	if errors.As(err, &r) && !slices.Contains(withoutPasswords, r.Number) {
		r.Message = ""
	}
	return err
}

// reason returns the cause of an error without what differs at each attempt, such as the local port or the time.
func (c *Client) reason(err error) string {
	var (
		server      *mysql.MySQLError
		before      *beforeError
		lookup      *net.DNSError
		operation   *net.OpError
		certificate x509.CertificateInvalidError
		timeout     net.Error
	)
	switch {
	case errors.As(err, &server):
		return server.Message
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		limit := c.options.Timeout
		if errors.As(err, &before) {
			limit = c.options.ConnectTimeout
		}
		return fmt.Sprintf("no answer within %s", limit)
	case errors.As(err, &lookup):
		return lookup.Name + ": " + lookup.Err
	case errors.As(err, &operation):
		return operation.Err.Error()
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, driver.ErrBadConn):
		return "the connection broke"
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return "its certificate has expired or is not yet valid"
	}
	return err.Error()
}

// is returns meaning in place of a server's error number that can have only this meaning after the statement.
func is(err error, number uint16, meaning error) error {
	if refused(err, number) {
		return meaning
	}
	return err
}

func refused(err error, number uint16) bool {
	var r *StatementError
	return errors.As(err, &r) && r.Number == number
}

// connector marks errors of connecting: a refused login is not the refusal of a statement. The timeout is for all of it: a
// server that hangs accepts connections, and then does not greet.
type connector struct {
	driver.Connector
	timeout time.Duration
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	connection, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, &beforeError{err}
	}
	return connection, nil
}

type beforeError struct{ error }

func (e *beforeError) Unwrap() error { return e.error }
