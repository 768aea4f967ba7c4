package accounts

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Options of a [Client].
type Options struct {
	Address  string // host:port
	User     string
	Password func() (string, error) // called for every new connection, so that the password may change
	TLS      *tls.Config            // nil for none
	Timeout  time.Duration          // for each call, connecting included. Default: 10 seconds

	// ConnectTimeout is for connecting, the login included. It is at most Timeout. Default: 3 seconds.
	ConnectTimeout time.Duration

	// Now returns the time. Default: [time.Now].
	Now func() time.Time
}

// Client is a [Database] on a server. It connects at its first call. It keeps few connections, and closes those that have been
// idle for a minute.
//
// After a call that could not reach the server, further calls return the same error at once, for a second at first and at most for
// 15 seconds. Then one call tries again; until it has ended, the others still return the error.
type Client struct {
	options Options
	db      *sql.DB
	breaker breaker
}

var _ Database = (*Client)(nil)

const (
	defaultTimeout        = 10 * time.Second
	defaultConnectTimeout = 3 * time.Second
	maxConnections        = 4
	maxIdle               = time.Minute
)

// New returns a client. It does not connect.
func New(o Options) (*Client, error) { return newClient(o, sessionMode) }

func newClient(o Options, mode string) (*Client, error) {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.ConnectTimeout = min(cmp.Or(o.ConnectTimeout, defaultConnectTimeout), o.Timeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{options: o, breaker: breaker{now: o.Now}}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.TLS = o.User, "tcp", o.Address, o.TLS
	config.Logger = &mysql.NopLogger{} // errors come back from the calls as well
	if mode != "" {
		config.Params = map[string]string{"sql_mode": mode}
	}
	err := config.Apply(
		mysql.Charset("utf8mb4", ""), // by SET NAMES: servers may ignore what the handshake says
		mysql.BeforeConnect(func(_ context.Context, config *mysql.Config) (err error) {
			config.Passwd, err = o.Password()
			return err
		}))
	if err != nil {
		return nil, err
	}
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	c.db = sql.OpenDB(connector{inner, o.ConnectTimeout})
	c.db.SetMaxOpenConns(maxConnections)
	c.db.SetConnMaxIdleTime(maxIdle)
	return c, nil
}

// Close closes all connections.
func (c *Client) Close() error { return c.db.Close() }

// Ping returns an error if the server cannot be reached.
func (c *Client) Ping(ctx context.Context) error { return c.do(ctx, c.db.PingContext) }

// Create implements [Database].
func (c *Client) Create(ctx context.Context, a Account, p Password, s Settings) error {
	if err := c.validate(a, p, s); err != nil {
		return err
	}
	return is(withoutText(c.exec(ctx, createUser(a, p, s))), cannotUser, ErrExists)
}

// SetPassword implements [Database].
func (c *Client) SetPassword(ctx context.Context, a Account, p Password) error {
	if err := c.validate(a, p); err != nil {
		return err
	}
	return is(withoutText(c.exec(ctx, setPassword(a, p))), cannotUser, ErrNotFound)
}

// SetSettings implements [Database].
func (c *Client) SetSettings(ctx context.Context, a Account, s Settings) error {
	if err := c.validate(a, s); err != nil {
		return err
	}
	return is(c.exec(ctx, setSettings(a, s)), cannotUser, ErrNotFound)
}

// Drop implements [Database].
func (c *Client) Drop(ctx context.Context, a Account) error {
	if err := c.validate(a); err != nil {
		return err
	}
	return c.exec(ctx, dropUser(a))
}

// Grant implements [Database].
func (c *Client) Grant(ctx context.Context, a Account, g Grant) error {
	if err := c.validate(a, g); err != nil {
		return err
	}
	return is(c.exec(ctx, grant(a, g)), noSuchUser, ErrNotFound)
}

// Revoke implements [Database].
func (c *Client) Revoke(ctx context.Context, a Account, g Grant) error {
	if err := c.validate(a, g); err != nil {
		return err
	}
	err := c.exec(ctx, revoke(a, g))
	if refused(err, noSuchGrant) || refused(err, noSuchTableGrant) {
		return nil
	}
	return err
}

// validate checks all that becomes part of a statement. The client refuses to manage its own account.
func (c *Client) validate(a Account, others ...interface{ Validate() error }) error {
	if a.User == c.options.User {
		return invalid("user name", "is %s, by which the operator itself logs in", a.User)
	}
	for _, v := range append(others, a) {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) exec(ctx context.Context, statement string) error {
	return c.do(ctx, func(ctx context.Context) error {
		_, err := c.db.ExecContext(ctx, statement)
		return err
	})
}
