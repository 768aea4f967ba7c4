package accounts_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

var bob = accounts.Account{User: "bob", Host: "%"}

func TestUnreachable(t *testing.T) {
	s := startServer(t)
	answer := func(password string, err error) func(*accounts.Options) {
		return func(o *accounts.Options) { o.Password = func() (string, error) { return password, err } }
	}
	up := func() error { return s.Up(t.Context()) }
	nothing := func() error { return nil }
	tests := map[string]struct {
		change        func(*accounts.Options)
		before, after func() error
		want          string
		reason        string
	}{
		"no such host":    {func(o *accounts.Options) { o.Address = "no-such-host..invalid:3306" }, nothing, nothing, "no-such-host..invalid: no such host", "a typing error; no DNS server is asked for an empty label"},
		"wrong password":  {answer("wrong", nil), nothing, nothing, "Access denied for user 'operator'@'127.0.0.1' (using password: YES)", "nothing can be asked"},
		"unread password": {answer("", errors.New("no file")), nothing, nothing, "no file", "the Secret is not mounted"},
		"no TLS there":    {func(o *accounts.Options) { o.TLS = &tls.Config{} }, nothing, nothing, "TLS requested but server does not support TLS", "passwords must not go in clear text"},
		"down":            {func(*accounts.Options) {}, s.Down, up, "connect: connection refused", "it is being restarted"},
		"frozen":          {func(o *accounts.Options) { o.Timeout = 50 * time.Millisecond }, s.Freeze, s.Thaw, "no answer within 50ms", "its disk hangs"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := connect(t, s, tc.change, func(o *accounts.Options) { o.Now = withoutPauses() })
			require.NoError(t, tc.before())
			for method, call := range calls(c) {
				err := call(t.Context())
				var unreachable *accounts.UnreachableError
				require.ErrorAs(t, err, &unreachable, method)
				assert.Contains(t, err.Error(), tc.want, tc.reason)
				assert.Equal(t, err.Error(), call(t.Context()).Error(), "the same as long as the cause is")
			}
			require.NoError(t, tc.after())
		})
	}
}

// calls are all methods, each with valid arguments.
func calls(db accounts.Database) map[string]func(context.Context) error {
	g := accounts.Grant{Database: "shop", Privileges: []string{"SELECT"}}
	return map[string]func(context.Context) error{
		"Create":      func(ctx context.Context) error { return db.Create(ctx, bob, "secret", accounts.Settings{}) },
		"SetPassword": func(ctx context.Context) error { return db.SetPassword(ctx, bob, "secret") },
		"SetSettings": func(ctx context.Context) error { return db.SetSettings(ctx, bob, accounts.Settings{}) },
		"Drop":        func(ctx context.Context) error { return db.Drop(ctx, bob) },
		"Grant":       func(ctx context.Context) error { return db.Grant(ctx, bob, g) },
		"Revoke":      func(ctx context.Context) error { return db.Revoke(ctx, bob, g) },
		"Lookup": func(ctx context.Context) error {
			state, err := db.Lookup(ctx, bob)
			if err == nil && state == nil {
				return errors.New("an error was taken for an absence")
			}
			return err
		},
	}
}

// TestReconnect checks that a connection that broke while idle is replaced, and that one that breaks during a call is an error.
func TestReconnect(t *testing.T) {
	s := startServer(t)
	c := connect(t, s)
	require.NoError(t, c.Create(t.Context(), bob, "secret", accounts.Settings{}))
	require.NoError(t, s.Down())
	require.NoError(t, s.Up(t.Context()))
	state, err := c.Lookup(t.Context(), bob)
	require.NoError(t, err)
	assert.NotNil(t, state)

	impatient := connect(t, s, func(o *accounts.Options) { o.Timeout, o.Now = time.Second, withoutPauses() })
	answers := func() { // on a busy machine it may take longer than a second
		t.Helper()
		require.EventuallyWithT(t, func(collect *assert.CollectT) {
			_, err := impatient.Lookup(t.Context(), bob)
			assert.NoError(collect, err)
		}, 5*time.Minute, time.Millisecond)
	}
	answers()
	require.NoError(t, s.Freeze())
	_, err = impatient.Lookup(t.Context(), bob)
	assert.ErrorContains(t, err, "cannot be reached: no answer within 1s")
	require.NoError(t, s.Thaw())
	answers()
}

func TestNothingIsOpenedBeforeItIsNeeded(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c, err := accounts.New(accounts.Options{Address: "127.0.0.1:1", User: "operator", Password: func() (string, error) { panic("asked") }})
	require.NoError(t, err)
	for name, err := range map[string]error{
		"no user":     c.Drop(t.Context(), accounts.Account{Host: "%"}),
		"no password": c.Create(t.Context(), bob, "", accounts.Settings{}),
		"no database": c.Grant(t.Context(), bob, accounts.Grant{Privileges: []string{"SELECT"}}),
		"ourselves":   c.Drop(t.Context(), accounts.Account{User: "operator", Host: "%"}),
	} {
		var invalid *accounts.InvalidError
		assert.ErrorAs(t, err, &invalid, name)
	}
	require.NoError(t, c.Close())
	goleak.VerifyNone(t, before)
}

func TestCallersContext(t *testing.T) {
	s := startServer(t)
	c := connect(t, s)
	require.NoError(t, s.Freeze())
	ctx, cancel := context.WithCancelCause(t.Context())
	shuttingDown := errors.New("shutting down")
	cancel(shuttingDown)
	for method, call := range calls(c) {
		assert.ErrorIs(t, call(ctx), shuttingDown, "%s: that says nothing about the database", method)
	}
	require.NoError(t, s.Thaw())
}

// TestRefusals checks the errors for an account with too few privileges.
func TestRefusals(t *testing.T) {
	s := sharedServer(t)
	root := openRoot(t, s)
	execute(t, root, "CREATE USER weak@`127.0.0.1` IDENTIFIED BY 'weak'", "CREATE USER bob")
	defer execute(t, root, "DROP USER weak@`127.0.0.1`, bob")
	c := connect(t, s, func(o *accounts.Options) {
		o.User, o.Password = "weak", func() (string, error) { return "weak", nil }
	})
	need := "error 1227 (42000): Access denied; you need (at least one of) the CREATE USER privilege(s) for this operation"
	for method, want := range map[string]string{
		"Create":      need,
		"SetPassword": need,
		"SetSettings": need,
		"Drop":        need,
		"Grant":       "error 1044 (42000): Access denied for user 'weak'@'127.0.0.1' to database 'shop'",
		"Revoke":      "error 1044 (42000): Access denied for user 'weak'@'127.0.0.1' to database 'shop'",
		"Lookup":      "error 1142 (42000): SELECT command denied to user 'weak'@'127.0.0.1' for table `mysql`.`user`",
	} {
		err := calls(c)[method](t.Context())
		var refused *accounts.StatementError
		assert.ErrorAs(t, err, &refused, method)
		assert.EqualError(t, err, "the database refused: "+want, method)
	}
}

// TestNoPasswordInErrors makes all calls fail in many ways, and searches the errors for passwords, including the operator's.
func TestNoPasswordInErrors(t *testing.T) {
	const canary = "canary-4d1f'`\"\\"
	s := startServer(t, mariadb.WithArgs("--max-allowed-packet=1024"))
	root := openRoot(t, s)
	admin := s.Admin().Password
	var texts []string
	try := func(c *accounts.Client, password string) {
		for _, err := range []error{
			c.Create(t.Context(), bob, accounts.Password(password), accounts.Settings{}),
			c.SetPassword(t.Context(), bob, accounts.Password(password)),
		} {
			for ; err != nil; err = errors.Unwrap(err) {
				texts = append(texts, err.Error(), fmt.Sprintf("%v %+v %#v", err, err, err))
			}
		}
	}
	passwords := []string{canary, canary + "\x00", canary + "\xff", strings.Repeat(canary, 200)}
	for _, p := range passwords {
		c := connect(t, s)
		try(c, p)
		try(c, p) // it exists
		require.NoError(t, c.Drop(t.Context(), bob))
		inServersMode, err := accounts.NewInServersMode(options(s)) // a syntax error, with the statement in the server's text
		require.NoError(t, err)
		try(inServersMode, p)
		require.NoError(t, inServersMode.Drop(t.Context(), bob))
		require.NoError(t, inServersMode.Close())
		try(connect(t, s, func(o *accounts.Options) { o.User = "nobody" }), p)
		try(connect(t, s, func(o *accounts.Options) { o.Address = "127.0.0.1:1" }), p)
	}
	execute(t, root, "SET GLOBAL read_only = ON")
	try(connect(t, s), canary)
	execute(t, root, "SET GLOBAL read_only = OFF")
	require.NoError(t, s.Freeze())
	try(connect(t, s, func(o *accounts.Options) { o.Timeout = 20 * time.Millisecond }), canary)
	require.NoError(t, s.Thaw())

	assert.Greater(t, len(texts), 30)
	assert.Contains(t, strings.Join(texts, "\n"), "error 1064 (42000)", "there was a syntax error")
	for _, text := range texts {
		assert.NotContains(t, text, "canary")
		assert.NotContains(t, text, admin)
	}
}
