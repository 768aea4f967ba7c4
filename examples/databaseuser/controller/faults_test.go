//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/accounts/accountstest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// server is the database as reconciletest compares it: with the settings, grants and password of each account.
type server struct{ *accountstest.Database }

func (s server) State() any {
	states := map[string]any{}
	for _, name := range []string{"alice", "bob"} { // no other names are in the scenarios
		all, _ := s.AccountsOf(context.Background(), name)
		for _, a := range all {
			if state, err := s.Lookup(context.Background(), a); err == nil && state != nil {
				states[a.String()] = []any{state.Settings, state.Grants, s.Password(a)}
			}
		}
	}
	return states
}

// connection is the operator's connection to the database, in which faults are injected.
type connection struct {
	accounts.Database
	process *reconciletest.Process
}

// do distinguishes a database that cannot be reached from one that refuses.
func do(ctx context.Context, send func(context.Context, string, func() error) error, what string, a accounts.Account, ask func() error) error {
	var answer error
	err := send(ctx, what+" "+a.String(), func() error { answer = ask(); return answer })
	if err != nil && answer == nil {
		return &accounts.UnreachableError{Err: err}
	}
	return err
}

func (c connection) Lookup(ctx context.Context, a accounts.Account) (state *accounts.State, err error) {
	err = do(ctx, c.process.Query, "look up", a, func() (err error) { state, err = c.Database.Lookup(ctx, a); return err })
	return state, err
}

func (c connection) AccountsOf(ctx context.Context, user string) (all []accounts.Account, err error) {
	err = do(ctx, c.process.Query, "list accounts of", accounts.Account{User: user}, func() (err error) { all, err = c.Database.AccountsOf(ctx, user); return err })
	return all, err
}

func (c connection) Powers(ctx context.Context, a accounts.Account, strangers ...accounts.Account) (powers []string, err error) {
	err = do(ctx, c.process.Query, "ask for powers of", a, func() (err error) { powers, err = c.Database.Powers(ctx, a, strangers...); return err })
	return powers, err
}

func (c connection) Create(ctx context.Context, a accounts.Account, p accounts.Password, s accounts.Settings) error {
	return do(ctx, c.process.Effect, "create", a, func() error { return c.Database.Create(ctx, a, p, s) })
}

func (c connection) SetPassword(ctx context.Context, a accounts.Account, p accounts.Password) error {
	return do(ctx, c.process.Effect, "set password of", a, func() error { return c.Database.SetPassword(ctx, a, p) })
}

func (c connection) SetSettings(ctx context.Context, a accounts.Account, s accounts.Settings) error {
	return do(ctx, c.process.Effect, "set settings of", a, func() error { return c.Database.SetSettings(ctx, a, s) })
}

func (c connection) Drop(ctx context.Context, a accounts.Account) error {
	return do(ctx, c.process.Effect, "drop", a, func() error { return c.Database.Drop(ctx, a) })
}

func (c connection) Grant(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return do(ctx, c.process.Effect, "grant to", a, func() error { return c.Database.Grant(ctx, a, g) })
}

func (c connection) Revoke(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return do(ctx, c.process.Effect, "revoke from", a, func() error { return c.Database.Revoke(ctx, a, g) })
}

// TestSurvivesEveryFault runs scenarios that cover everything that the operator reacts to, once for every fault at every
// point. The faults at the creation and the deletion of a DatabaseUser are tried only in the scenario "made".
func TestSurvivesEveryFault(t *testing.T) {
	tests := map[string][]reconciletest.Action{
		"made": {reconciletest.Create(sample()), reconciletest.Delete(sample())},
		"changed": {
			reconciletest.Create(sample()).WithoutFaults(),
			reconciletest.Change(secret(""), func(s *corev1.Secret) { s.Data["password"] = []byte("another password") }),
			reconciletest.Change(sample(), request),
			reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) {
				u.Spec.Grants[0].Privileges[0], u.Spec.Limits.MaxUserConnections = "INSERT", 7
			}),
			reconciletest.Delete(sample()).WithoutFaults(),
		},
		"renamed": {
			reconciletest.Create(sample()).WithoutFaults(),
			reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) { u.Spec.Hosts = []string{"127.0.0.1", "10.%"} }),
			reconciletest.Change(sample(), func(u *userv1alpha1.DatabaseUser) { u.Spec.User = "bob" }),
			reconciletest.Delete(sample()).WithoutFaults(),
		},
	}
	var reports []*reconciletest.Report
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario(t, actions, secret("correct horse battery"))
			s.Options.Pairs = 20
			reports = append(reports, reconciletest.Explore(t, s))
		})
	}
	reconciletest.AssertRole(t, "../config/rbac/role.yaml", reports)
}

// scenario returns a scenario with these actions, and with these objects from the start.
func scenario(t *testing.T, actions []reconciletest.Action, objects ...client.Object) reconciletest.Scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, userv1alpha1.AddToScheme(scheme))
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"../config/crd/bases"},
		Objects:  objects,
		External: func() reconciletest.External { return server{&accountstest.Database{}} },
		Start: func(p *reconciletest.Process) error {
			operator := &controller.Operator{Database: connection{p.External().(server).Database, p}, Target: "shop", Resync: 10 * time.Minute}
			return operator.SetupWithManager(p.Manager(controller.Cache()))
		},
		Actions: actions,
	}
}

// TestSwapSurvivesEveryFault exchanges the names of two DatabaseUsers, and deletes both. TestSurvivesEveryFault tries the faults
// at the creation and the deletion.
func TestSwapSurvivesEveryFault(t *testing.T) {
	pair := rivals(false, [2]string{"first", "alice"}, [2]string{"second", "bob"})
	first, second := pair[0].(*userv1alpha1.DatabaseUser), pair[2].(*userv1alpha1.DatabaseUser)
	rename := func(u *userv1alpha1.DatabaseUser, name string) reconciletest.Action {
		return reconciletest.Change(u, func(u *userv1alpha1.DatabaseUser) { u.Spec.User = name })
	}
	reconciletest.Explore(t, scenario(t, []reconciletest.Action{
		reconciletest.Create(first).WithoutFaults(), reconciletest.Create(second).WithoutFaults(),
		rename(first, "bob"), rename(second, "alice"),
		reconciletest.Delete(first).WithoutFaults(), reconciletest.Delete(second).WithoutFaults(),
	}, pair[1], pair[3]))
}
