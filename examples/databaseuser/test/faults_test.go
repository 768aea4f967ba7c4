package test

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile"
)

// story is a life in which everything happens that the operators answer to.
var story = []struct {
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
		change(t, n, n.secret(n.unique("alice")), func(s *corev1.Secret) { s.Data = map[string][]byte{"password": []byte("marlin")} })
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

// fuse ends the process before or after an operation: a write to the API server, or a statement that changes an account.
// (After one that only reads everything is as it was before.)
type fuse struct {
	at, done int // from 1; 0 for never
	after    bool
	blown    bool
}

var errDead = errors.New("the process has ended")

func (f *fuse) alive() error {
	if f.blown {
		return errDead
	}
	return nil
}

func (f *fuse) do(operation func() error) error {
	if f.blown {
		return errDead
	}
	f.done++
	f.blown = f.done == f.at
	if f.blown && !f.after {
		return errDead
	}
	if err := operation(); !f.blown {
		return err
	}
	return errDead
}

// mortal is a client whose process may end. Secrets' metadata come from where Secrets do.
type mortal struct {
	client.Client
	*fuse
}

func (m mortal) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := m.alive(); err != nil {
		return err
	}
	metadata, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return m.Client.Get(ctx, key, obj, opts...)
	}
	var s corev1.Secret
	err := m.Client.Get(ctx, key, &s)
	metadata.ObjectMeta = s.ObjectMeta
	return err
}

func (m mortal) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return m.do(func() error { return m.Client.Patch(ctx, obj, patch, opts...) })
}

func (m mortal) Status() client.SubResourceWriter { return mortalStatus{m.Client.Status(), m.fuse} }

type mortalStatus struct {
	client.SubResourceWriter
	*fuse
}

func (m mortalStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return m.do(func() error { return m.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}

// mortalDatabase is a database that a process asks which may end.
type mortalDatabase struct {
	accounts.Database
	*fuse
}

func (m mortalDatabase) Lookup(ctx context.Context, a accounts.Account) (*accounts.State, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	return m.Database.Lookup(ctx, a)
}

func (m mortalDatabase) Create(ctx context.Context, a accounts.Account, p accounts.Password, s accounts.Settings) error {
	return m.do(func() error { return m.Database.Create(ctx, a, p, s) })
}

func (m mortalDatabase) SetPassword(ctx context.Context, a accounts.Account, p accounts.Password) error {
	return m.do(func() error { return m.Database.SetPassword(ctx, a, p) })
}

func (m mortalDatabase) SetSettings(ctx context.Context, a accounts.Account, s accounts.Settings) error {
	return m.do(func() error { return m.Database.SetSettings(ctx, a, s) })
}

func (m mortalDatabase) Drop(ctx context.Context, a accounts.Account) error {
	return m.do(func() error { return m.Database.Drop(ctx, a) })
}

func (m mortalDatabase) Grant(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return m.do(func() error { return m.Database.Grant(ctx, a, g) })
}

func (m mortalDatabase) Revoke(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return m.do(func() error { return m.Database.Revoke(ctx, a, g) })
}

// fault is what goes wrong: the process ends, or what is read is some writes old.
type fault struct {
	at    int  // the operation
	after bool // and then the next thing happens before the process is up again
	lag   int
}

func (f fault) String() string {
	switch {
	case f.lag > 0:
		return fmt.Sprintf("reads %d writes old", f.lag)
	case f.after:
		return fmt.Sprintf("crash after operation %d, and the next act meanwhile", f.at)
	default:
		return fmt.Sprintf("crash before operation %d", f.at)
	}
}

// teller tells the story with a fault.
type teller struct {
	*tenant
	fault
	history     *operatortest.History
	targets     []target
	process     *operatortest.Process
	fuse        *fuse
	reconcilers []*reconcile.Reconciler[*userv1alpha1.DatabaseUser]
}

// target is an operator's database.
type target struct {
	name string
	*database
	client accounts.Database
}

// begin begins a process with an operator for each database.
func (s *teller) begin(f *fuse) {
	s.fuse, s.process, s.reconcilers = f, &operatortest.Process{History: s.history}, nil
	c := mortal{s.process.Client(), f}
	for _, target := range s.targets {
		operator := &controller.Operator{Database: mortalDatabase{target.client, f}, Target: s.unique(target.name), Resync: time.Hour}
		r := reconcile.New(client.Client(c), operator.Steps(c)...).Only(operator.Serves).WithConditions(controller.Conditions)
		s.reconcilers = append(s.reconcilers, r)
	}
}

// run brings passes until nothing more happens, or the process has ended.
func (s *teller) run(t *testing.T) {
	t.Helper()
	s.process.Lag = s.lag
	for passes, quiet := 0, false; !quiet && !s.fuse.blown; passes++ {
		require.Less(t, passes, 30, "it does not become quiet")
		before := s.history.Len()
		for _, r := range s.reconcilers {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: s.namespace, Name: s.unique("alice")}})
			require.NoError(t, err)
		}
		for _, obj := range s.history.Now() {
			if u, ok := obj.(*userv1alpha1.DatabaseUser); ok {
				require.NotEqual(t, "AccountExists", ready(u).Reason, "what is ours is never refused")
			}
		}
		switch {
		case s.history.Len() > before:
			s.process.Lag = s.lag
		case s.process.Lag > 0:
			s.process.Lag-- // the cache catches up
		default:
			quiet = true
		}
	}
}

// runs makes the names of each run its own: one namespace is enough for all.
var runs atomic.Int64

// tell gives the state before the end, and how many operations there were. In the end nothing may be left.
func (f fault) tell(t *testing.T, n *tenant, targets []target) (state string, operations int) {
	t.Helper()
	own := *n
	own.suffix += "-" + strconv.FormatInt(runs.Add(1), 10)
	s := &teller{tenant: &own, fault: f, targets: targets}
	s.history = operatortest.NewHistory(s.WithWatch, map[string]client.IndexerFunc{controller.UserIndex: controller.IndexUsers})
	s.WithWatch = s.history.Client()
	s.begin(&fuse{at: f.at, after: f.after})
	for i, chapter := range story {
		if i == len(story)-1 && !s.fuse.blown {
			state = s.describe(t)
		}
		chapter.act(t, s.tenant)
		if s.fuse.blown { // since the chapter before
			s.begin(&fuse{})
		}
		if s.run(t); s.fuse.blown && (!f.after || i == len(story)-1) {
			s.begin(&fuse{})
			s.run(t)
		}
		operations = s.fuse.done
	}
	assert.Error(t, s.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: s.unique("alice")}, s.user(s.unique("alice"))), "it is gone")
	for _, target := range targets {
		assert.Empty(t, target.accounts(t, s.tenant), "nothing is left in the database %s", target.name)
	}
	return state, operations
}

// describe gives the state without what differs from run to run.
func (s *teller) describe(t *testing.T) string {
	t.Helper()
	u := live(t, s.tenant, s.user(s.unique("alice")))
	for i := range u.Status.Conditions {
		c := &u.Status.Conditions[i]
		c.LastTransitionTime, c.LastUpdateTime = metav1.Time{}, metav1.Time{}
	}
	secret := live(t, s.tenant, s.secret(s.unique("alice")))
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

// Wherever the operators end, and however old what they read: it comes to the same, and no account is left or refused.
func TestFaults(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	targets := []target{{name: "shop", database: open(t, sharedServer(t))}, {name: "archive", database: open(t, archiveServer(t))}}
	for i := range targets {
		targets[i].client = connect(t, targets[i].Server, passwordOf(targets[i].Server))
	}
	want, operations := fault{}.tell(t, n, targets)
	t.Logf("%d operations, so %d crash points; before the end:\n%s", operations, 2*operations, want)
	for _, part := range []string{
		`"user":"bob","hosts":["10.%","127.0.0.1"]`, `"reason":"ProvisionSucceeded"`,
		"shop: GRANT UPDATE ON `shop`.* TO `bob`@`127.0.0.1`", "shop: GRANT SELECT ON `app\\_1`.* TO `bob`@`10.%`", "MAX_USER_CONNECTIONS 7",
	} {
		require.Contains(t, want, part)
	}
	require.NotContains(t, want, "archive:")
	var faults []fault
	for lag := 1; lag <= 3; lag++ {
		faults = append(faults, fault{lag: lag})
	}
	for n := 1; n <= operations; n++ {
		faults = append(faults, fault{at: n}, fault{at: n, after: true})
	}
	for _, f := range faults {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			got, _ := f.tell(t, n, targets)
			if got != "" { // it was seen before its end
				assert.Equal(t, want, got)
			}
		})
	}
}
