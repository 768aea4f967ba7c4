package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile"
)

// scenario covers everything that the operators react to.
var scenario = []struct {
	name string
	act  func(t *testing.T, n *tenant)
}{
	{"created", func(t *testing.T, n *tenant) {
		n.setPassword(t, n.unique("alice"), "swordfish")
		n.create(t, n.unique("alice"), func(u *userv1alpha1.DatabaseUser) {
			u.Spec.User, u.Spec.Hosts = n.unique("alice"), []string{"%", "127.0.0.1"}
			u.Spec.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"SELECT"}}}
		})
	}},
	{"renamed", func(t *testing.T, n *tenant) { n.set(t, n.unique("alice"), func(s *spec) { s.User = n.unique("bob") }) }},
	{"password rotated", func(t *testing.T, n *tenant) {
		operatortest.Change(t, n, n.secret(n.unique("alice")), func(s *corev1.Secret) { s.Data = map[string][]byte{"password": []byte("marlin")} })
	}},
	{"grants and limits changed", func(t *testing.T, n *tenant) {
		n.set(t, n.unique("alice"), func(s *spec) {
			s.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"UPDATE"}}, {Database: "app_1", Privileges: []privilege{"SELECT"}}}
			s.Limits.MaxUserConnections = 7
		})
	}},
	{"hosts changed", func(t *testing.T, n *tenant) {
		n.set(t, n.unique("alice"), func(s *spec) { s.Hosts = []string{"127.0.0.1", "10.%"} })
	}},
	{"relabelled", func(t *testing.T, n *tenant) { n.relabel(t, n.unique("alice"), n.unique("archive")) }},
	{"relabelled back", func(t *testing.T, n *tenant) { n.relabel(t, n.unique("alice"), n.unique("shop")) }},
	{"deleted", func(t *testing.T, n *tenant) { n.delete(t, n.unique("alice")) }},
}

// mortalDatabase is the database of a process that may crash.
type mortalDatabase struct {
	accounts.Database
	process *operatortest.Process
}

func (m mortalDatabase) Lookup(ctx context.Context, a accounts.Account) (*accounts.State, error) {
	var state *accounts.State
	err := m.process.Read(func() (err error) {
		state, err = m.Database.Lookup(ctx, a)
		return err
	})
	return state, err
}

func (m mortalDatabase) AccountsOf(ctx context.Context, user string) ([]accounts.Account, error) {
	var all []accounts.Account
	err := m.process.Read(func() (err error) {
		all, err = m.Database.AccountsOf(ctx, user)
		return err
	})
	return all, err
}

func (m mortalDatabase) Create(ctx context.Context, a accounts.Account, p accounts.Password, s accounts.Settings) error {
	return m.process.Write(func() error { return m.Database.Create(ctx, a, p, s) })
}

func (m mortalDatabase) SetPassword(ctx context.Context, a accounts.Account, p accounts.Password) error {
	return m.process.Write(func() error { return m.Database.SetPassword(ctx, a, p) })
}

func (m mortalDatabase) SetSettings(ctx context.Context, a accounts.Account, s accounts.Settings) error {
	return m.process.Write(func() error { return m.Database.SetSettings(ctx, a, s) })
}

func (m mortalDatabase) Drop(ctx context.Context, a accounts.Account) error {
	return m.process.Write(func() error { return m.Database.Drop(ctx, a) })
}

func (m mortalDatabase) Grant(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return m.process.Write(func() error { return m.Database.Grant(ctx, a, g) })
}

func (m mortalDatabase) Revoke(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return m.process.Write(func() error { return m.Database.Revoke(ctx, a, g) })
}

// runner runs the scenario with a fault.
type runner struct {
	*tenant
	operatortest.Fault
	history     *operatortest.History
	targets     []target
	process     *operatortest.Process
	reconcilers []*reconcile.Reconciler[*userv1alpha1.DatabaseUser]
}

// target is the database of an operator.
type target struct {
	name string
	*database
	client accounts.Database
}

// begin starts a process with an operator for each database.
func (s *runner) begin(f operatortest.Fault) {
	s.process, s.reconcilers = &operatortest.Process{History: s.history, Fault: f}, nil
	c := s.process.Client()
	for _, target := range s.targets {
		operator := &controller.Operator{Database: mortalDatabase{target.client, s.process}, Target: s.unique(target.name), Resync: time.Hour}
		r := reconcile.New(c, operator.Steps()...).WithFilter(operator.Serves).WithConditions(controller.Conditions)
		s.reconcilers = append(s.reconcilers, r)
	}
}

// run runs passes until nothing more happens, or the process has crashed.
func (s *runner) run(t *testing.T) {
	t.Helper()
	s.process.Lag = s.Lag
	for passes, quiet := 0, false; !quiet && !s.process.Crashed; passes++ {
		require.Less(t, passes, 30, "the operators do not come to rest")
		before := s.history.Len()
		for _, r := range s.reconcilers {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: s.Namespace, Name: s.unique("alice")}})
			require.NoError(t, err)
		}
		for _, obj := range s.history.Objects() {
			if u, ok := obj.(*userv1alpha1.DatabaseUser); ok {
				require.NotEqual(t, "AccountExists", ready(u).Reason, "what is ours is never refused")
			}
		}
		switch {
		case s.history.Len() > before:
			s.process.Lag = s.Lag
		case s.process.Lag > 0:
			s.process.Lag-- // the cache catches up
		default:
			quiet = true
		}
	}
}

// runs numbers the runs, whose names differ, so that all can use one namespace.
var runs atomic.Int64

// runScenario runs the scenario with a fault. If the process crashes after an operation, the next action happens before it is up
// again. It returns the state before the deletion and the number of operations. In the end nothing may be left.
func runScenario(t *testing.T, n *tenant, targets []target, f operatortest.Fault) (state string, operations int) {
	t.Helper()
	user := *n.User
	own := &tenant{&user, n.suffix + "-" + strconv.FormatInt(runs.Add(1), 10)}
	s := &runner{tenant: own, Fault: f, targets: targets}
	s.history = operatortest.NewHistory(s.User, map[string]client.IndexerFunc{controller.UserIndex: controller.IndexUsers})
	s.begin(f)
	for i, step := range scenario {
		if i == len(scenario)-1 && !s.process.Crashed {
			state = s.describe(t)
		}
		step.act(t, s.tenant)
		if s.process.Crashed { // during the step before
			s.begin(operatortest.Fault{})
		}
		if s.run(t); s.process.Crashed && (!f.Committed || i == len(scenario)-1) {
			s.begin(operatortest.Fault{})
			s.run(t)
		}
		operations = s.process.Writes
	}
	assert.Error(t, s.Get(context.Background(), client.ObjectKey{Namespace: s.Namespace, Name: s.unique("alice")}, s.user(s.unique("alice"))), "it is gone")
	for _, target := range targets {
		assert.Empty(t, target.accounts(t, s.tenant), "nothing is left in the database %s", target.name)
	}
	return state, operations
}

// describe returns the part of the state that is the same after every run.
func (s *runner) describe(t *testing.T) string {
	t.Helper()
	u := operatortest.Live(t, s.tenant, s.user(s.unique("alice")))
	for i := range u.Status.Conditions {
		c := &u.Status.Conditions[i]
		c.LastTransitionTime, c.LastUpdateTime = metav1.Time{}, metav1.Time{}
	}
	secret := operatortest.Live(t, s.tenant, s.secret(s.unique("alice")))
	assert.Equal(t, string(secret.UID)+"/"+secret.ResourceVersion, u.Status.PasswordVersion)
	u.Status.PasswordVersion = ""
	status, err := json.Marshal(u.Status)
	require.NoError(t, err)
	var all strings.Builder
	fmt.Fprintf(&all, "%s %v\n", status, u.Finalizers)
	for _, target := range s.targets {
		for _, account := range target.accounts(t, s.tenant) {
			user, host, _ := strings.Cut(account, "@")
			lines := target.lines(t, "SHOW GRANTS FOR `"+user+"`@`"+host+"`")
			slices.Sort(lines)
			for _, line := range lines {
				before, _, _ := strings.Cut(line, " IDENTIFIED BY")
				_, limits, _ := strings.Cut(line, "' WITH ")
				fmt.Fprintf(&all, "%s: %s %s\n", target.name, before, limits)
			}
		}
	}
	assert.NoError(t, s.targets[0].login(u.Spec.User, "marlin"))
	return strings.ReplaceAll(all.String(), s.unique(""), "")
}

// TestFaults runs the scenario with crashes and stale reads: the result is always the same, and no account is left or refused.
func TestFaults(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	targets := []target{{name: "shop", database: open(t, sharedServer(t))}, {name: "archive", database: open(t, archiveServer(t))}}
	for i := range targets {
		targets[i].client = connect(t, targets[i].Server, passwordOf(targets[i].Server))
	}
	want, operations := runScenario(t, n, targets, operatortest.Fault{})
	t.Logf("%d operations, so %d crash points; before the end:\n%s", operations, 2*operations, want)
	for _, part := range []string{
		`"user":"bob","hosts":["10.%","127.0.0.1"]`, `"reason":"ProvisionSucceeded"`,
		"shop: GRANT UPDATE ON `shop`.* TO `bob`@`127.0.0.1`", "shop: GRANT SELECT ON `app\\_1`.* TO `bob`@`10.%`", "MAX_USER_CONNECTIONS 7",
	} {
		require.Contains(t, want, part)
	}
	require.NotContains(t, want, "archive:")
	operatortest.EachFault(t, operations, func(t *testing.T, f operatortest.Fault) {
		got, _ := runScenario(t, n, targets, f)
		if got != "" { // it was seen before its end
			assert.Equal(t, want, got)
		}
	})
}
