package test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// operator is the operator that runs in this process, wired as in main.go.
type operator struct {
	*operatortest.Operator
	clock *clocktesting.FakePassiveClock // decides when a resync is due
	calls *calls
}

type settings struct {
	target   string
	access   *rest.Config
	server   *mariadb.Server
	password func() (string, error)
	wrap     func(accounts.Database) accounts.Database
	options  ctrl.Options
	cache    []string // namespaces
}

// connect returns the operator's client of a server.
func connect(t testing.TB, s *mariadb.Server, password func() (string, error)) *accounts.Client {
	t.Helper()
	c, err := accounts.New(accounts.Options{Address: s.Address(), User: s.Admin().User, Password: password,
		Timeout: operatortest.Patience, ConnectTimeout: operatortest.Patience}) // the machine may be busy
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func passwordOf(s *mariadb.Server) func() (string, error) {
	return func() (string, error) { return s.Admin().Password, nil }
}

// operate starts the operator for the target shop, in the tenant's namespace. It is stopped when the test ends.
func (n *tenant) operate(t testing.TB, s *mariadb.Server, edits ...func(*settings)) *operator {
	t.Helper()
	with := settings{target: n.unique("shop"), access: n.ControlPlane.Config(), server: s, password: passwordOf(s), cache: []string{n.Namespace}}
	for _, edit := range edits {
		edit(&with)
	}
	o := &operator{clock: clocktesting.NewFakePassiveClock(time.Now()), calls: &calls{Database: connect(t, s, with.password)}}
	var database accounts.Database = o.calls
	if with.wrap != nil {
		database = with.wrap(database)
	}
	operator := &controller.Operator{Database: database, Target: with.target, Resync: time.Hour, Clock: o.clock}
	with.options.Scheme, with.options.Cache = scheme, controller.Cache(with.cache...)
	o.Operator = operatortest.Start(t, with.access, with.options, &userv1alpha1.DatabaseUser{}, operator.SetupWithManager)
	return o
}

// pass triggers passes over DatabaseUsers and waits until one that has begun since has ended.
func (o *operator) pass(t *testing.T, n *tenant, names ...string) {
	t.Helper()
	o.Pass(t, n, n.users(names...)...)
}

// resync makes a resync due and triggers it.
func (o *operator) resync(t *testing.T, n *tenant, names ...string) {
	t.Helper()
	o.clock.SetTime(o.clock.Now().Add(2 * time.Hour))
	o.pass(t, n, names...)
}

// calls records the calls of the database, and lets a test intercept them.
type calls struct {
	accounts.Database
	mu     sync.Mutex
	made   []string
	before func(call string, a accounts.Account) error
}

// Take returns the calls since it was last called.
func (c *calls) Take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.made
	c.made = nil
	return made
}

func (c *calls) intercept(before func(call string, a accounts.Account) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
}

func (c *calls) begin(call string, a accounts.Account) error {
	c.mu.Lock()
	c.made = append(c.made, call+" "+a.User)
	before := c.before
	c.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(call, a)
}

func (c *calls) Lookup(ctx context.Context, a accounts.Account) (*accounts.State, error) {
	if err := c.begin("Lookup", a); err != nil {
		return nil, err
	}
	return c.Database.Lookup(ctx, a)
}

func (c *calls) AccountsOf(ctx context.Context, user string) ([]accounts.Account, error) {
	if err := c.begin("AccountsOf", accounts.Account{User: user}); err != nil {
		return nil, err
	}
	return c.Database.AccountsOf(ctx, user)
}

func (c *calls) Powers(ctx context.Context, a accounts.Account, strangers ...accounts.Account) ([]string, error) {
	if err := c.begin("Powers", a); err != nil {
		return nil, err
	}
	return c.Database.Powers(ctx, a, strangers...)
}

func (c *calls) Create(ctx context.Context, a accounts.Account, p accounts.Password, s accounts.Settings) error {
	if err := c.begin("Create", a); err != nil {
		return err
	}
	return c.Database.Create(ctx, a, p, s)
}

func (c *calls) SetPassword(ctx context.Context, a accounts.Account, p accounts.Password) error {
	if err := c.begin("SetPassword", a); err != nil {
		return err
	}
	return c.Database.SetPassword(ctx, a, p)
}

func (c *calls) SetSettings(ctx context.Context, a accounts.Account, s accounts.Settings) error {
	if err := c.begin("SetSettings", a); err != nil {
		return err
	}
	return c.Database.SetSettings(ctx, a, s)
}

func (c *calls) Drop(ctx context.Context, a accounts.Account) error {
	if err := c.begin("Drop", a); err != nil {
		return err
	}
	return c.Database.Drop(ctx, a)
}

func (c *calls) Grant(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	if err := c.begin("Grant "+g.String(), a); err != nil {
		return err
	}
	return c.Database.Grant(ctx, a, g)
}

func (c *calls) Revoke(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	if err := c.begin("Revoke "+g.String(), a); err != nil {
		return err
	}
	return c.Database.Revoke(ctx, a, g)
}
