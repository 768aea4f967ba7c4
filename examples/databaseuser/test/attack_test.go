package test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestMany creates, changes and deletes many DatabaseUsers at the same time, some for the same accounts.
func TestMany(t *testing.T) {
	t.Parallel()
	const users, doubles = 50, 10
	n, db := newTenant(t), open(t, sharedServer(t))
	n.setPassword(t, "shared", "swordfish")
	o := n.operate(t, db.Server)
	began := time.Now()
	names := make([]string, users)
	for i := range names {
		names[i] = fmt.Sprintf("user%03d", i)
		n.create(t, names[i], func(u *userv1alpha1.DatabaseUser) {
			u.Spec.Password.Name = "shared"
			if i >= users-doubles {
				u.Spec.User = n.unique(names[i-doubles])
			}
		})
	}
	count := func(reason string) int {
		var list userv1alpha1.DatabaseUserList
		require.NoError(t, n.List(t.Context(), &list, client.InNamespace(n.Namespace)))
		return len(slices.DeleteFunc(list.Items, func(u userv1alpha1.DatabaseUser) bool { return ready(&u).Reason != reason }))
	}
	operatortest.Eventually(t, "all are made", func(c *assert.CollectT) {
		assert.Equal(c, users-doubles, count("ProvisionSucceeded"))
		assert.Equal(c, doubles, count("AccountClaimed"))
	})
	t.Logf("%d accounts made in %s", users-doubles, time.Since(began).Round(time.Millisecond))
	assert.Len(t, db.accounts(t, n), users-doubles)
	assert.LessOrEqual(t, o.Requests.Take()["PATCH databaseusers/status"], 3*(users-doubles)+2*doubles, "what will be, that it is there, and that it is as specified")

	began = time.Now()
	n.setPassword(t, "shared", "marlin")
	for _, name := range names[:users-doubles] {
		operatortest.Eventually(t, "the password is rotated", func(c *assert.CollectT) { assert.NoError(c, db.login(n.unique(name), "marlin")) })
	}
	t.Logf("%d passwords rotated by one Secret in %s", users-doubles, time.Since(began).Round(time.Millisecond))
	n.delete(t, names[:users-doubles]...)
	for _, name := range names[:users-doubles] {
		n.Gone(t, n.user(name))
	}
	operatortest.Eventually(t, "the others take over", func(c *assert.CollectT) { assert.Equal(c, doubles, count("ProvisionSucceeded")) })
	assert.Len(t, db.accounts(t, n), doubles)
	n.delete(t, names[users-doubles:]...)
	for _, name := range names[users-doubles:] {
		n.Gone(t, n.user(name))
	}
	assert.Empty(t, db.accounts(t, n))
}

// TestDatabaseNamesIgnoreCase checks that on a server that stores names in lower case, grants in another case are the same.
func TestDatabaseNamesIgnoreCase(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t, mariadb.WithArgs("--lower-case-table-names=1")))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Grants = []userv1alpha1.Grant{{Database: "Shop", Privileges: []privilege{"SELECT"}}}
	}).Spec.User
	n.provisioned(t, "alice")
	for _, database := range []string{"shop", "SHOP"} {
		n.set(t, "alice", func(s *spec) { s.Grants[0].Database = database })
		n.provisioned(t, "alice")
		assert.Equal(t, []string{"GRANT SELECT ON `shop`.* TO `" + user + "`@`%`"}, db.grants(t, user, "%"), database)
	}
	o.calls.Take()
	o.resync(t, n, "alice")
	for _, call := range o.calls.Take() {
		assert.Equal(t, "Lookup "+user, call)
	}
	n.set(t, "alice", func(s *spec) { s.Grants = nil })
	n.provisioned(t, "alice")
	assert.Empty(t, db.grants(t, user, "%"))
}

// TestWildcardsInDatabaseNames checks that a name with wildcards is one database, and that patterns of others are left alone.
func TestWildcardsInDatabaseNames(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		for _, database := range []string{"app_1", "app%", `app\_1`, "app"} {
			u.Spec.Grants = append(u.Spec.Grants, userv1alpha1.Grant{Database: database, Privileges: []privilege{"SELECT"}})
		}
	}).Spec.User
	n.provisioned(t, "alice")
	db.execute(t, "GRANT INSERT ON `app_1`.* TO `"+user+"`", "GRANT INSERT ON `app%`.* TO `"+user+"`")
	on := func(privilege, pattern string) string {
		return "GRANT " + privilege + " ON `" + pattern + "`.* TO `" + user + "`@`%`"
	}
	theirs := []string{on("INSERT", "app_1"), on("INSERT", "app%")}
	assert.ElementsMatch(t, append(theirs, on("SELECT", `app\_1`), on("SELECT", `app\%`), on("SELECT", `app\\\_1`), on("SELECT", "app")), db.grants(t, user, "%"))
	o.calls.Take()
	o.resync(t, n, "alice")
	for _, call := range o.calls.Take() {
		assert.Equal(t, "Lookup "+user, call)
	}
	n.set(t, "alice", func(s *spec) { s.Grants = nil })
	n.provisioned(t, "alice")
	assert.ElementsMatch(t, theirs, db.grants(t, user, "%"))
}

// TestDatabaseGoesAwayAmongGrants checks that a database that stops answering costs one timeout, not one for each grant.
func TestDatabaseGoesAwayAmongGrants(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	var mu sync.Mutex
	away := true
	o.calls.intercept(func(call string, _ accounts.Account) error {
		mu.Lock()
		defer mu.Unlock()
		if away && strings.HasPrefix(call, "Grant ") {
			return &accounts.UnreachableError{Address: "db", Reason: "no answer within 5s"}
		}
		return nil
	})
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		for i := range 20 {
			u.Spec.Grants = append(u.Spec.Grants, userv1alpha1.Grant{Database: fmt.Sprint("db", i), Privileges: []privilege{"SELECT"}})
		}
	})
	got := n.settled(t, "alice", "DatabaseUnreachable")
	assert.Equal(t, 1, strings.Count(ready(got).Message, "no answer"))
	mu.Lock()
	away = false
	mu.Unlock()
	n.provisioned(t, "alice")
	assert.Len(t, db.grants(t, n.unique("alice"), "%"), 20)
}

// TestRoleOfTheSameName checks that a role is not taken for an account.
func TestRoleOfTheSameName(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	role := n.unique("alice")
	db.execute(t, "CREATE ROLE `"+role+"`", "GRANT SELECT ON theirs.* TO `"+role+"`")
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	u := n.user("alice")
	operatortest.Eventually(t, "it is decided", func(c *assert.CollectT) { assert.NotEmpty(c, ready(operatortest.Live(c, n, u)).Reason) })
	t.Log(ready(u).Reason, ready(u).Message)
	n.delete(t, "alice")
	n.Gone(t, u)
	assert.Len(t, db.lines(t, "SELECT User FROM mysql.user WHERE User = ? AND Host = ''", role), 1, "the role is still there")
}

// TestFinalizerFails checks that no statement is sent before the finalizer is added, and that its removal is tried again.
func TestFinalizerFails(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	var failing atomic.Pointer[func() error] // what happens instead of a patch of metadata
	o := n.operate(t, db.Server, func(s *settings) {
		s.options.NewClient = operatortest.Intercept(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if fail := failing.Load(); fail != nil {
					if err := (*fail)(); err != nil {
						return err
					}
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
		})
	})
	fail := func(times int32, meanwhile func()) {
		var done atomic.Int32
		failing.Store(new(func() error {
			if done.Add(1) > times {
				return nil
			}
			meanwhile()
			return apierrors.NewInternalError(errors.New("refused by the test"))
		}))
	}
	fail(2, func() { assert.Empty(t, o.calls.Take()) })
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	u := n.provisioned(t, "alice")
	o.calls.Take()
	fail(2, func() {})
	n.delete(t, "alice")
	n.Gone(t, u)
	assert.Equal(t, []string{"Drop " + u.Spec.User}, slices.Compact(o.calls.Take()))
	assert.Empty(t, db.accounts(t, n))
}

// TestReadFails checks that an account that cannot be read is not taken for absent.
func TestReadFails(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice").Spec.User
	n.provisioned(t, "alice")
	o.calls.Take()
	var failures atomic.Int32
	failures.Store(3)
	o.calls.intercept(func(call string, _ accounts.Account) error {
		if call == "Lookup" && failures.Add(-1) >= 0 {
			return &accounts.StatementError{Number: 1205, State: "HY000", Message: "Lock wait timeout exceeded"}
		}
		return nil
	})
	o.resync(t, n, "alice")
	operatortest.Eventually(t, "it can be read again", func(c *assert.CollectT) { assert.Negative(c, failures.Load()) })
	n.provisioned(t, "alice")
	assert.Equal(t, []string{"Lookup " + user}, slices.Compact(o.calls.Take()), "neither dropped nor created")
}
