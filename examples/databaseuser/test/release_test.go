package test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// archive is a second database.
var archive = sync.OnceValues(func() (*mariadb.Server, error) { return mariadb.Start(context.Background()) })

func archiveServer(t *testing.T) *mariadb.Server {
	t.Helper()
	s, err := archive()
	require.NoError(t, err)
	return s
}

func (n *tenant) operateArchive(t *testing.T) *operator {
	t.Helper()
	return n.operate(t, archiveServer(t), func(s *settings) { s.target = n.unique("archive") })
}

// TestRelabelled moves a DatabaseUser between two operators by its label.
func TestRelabelled(t *testing.T) {
	t.Parallel()
	n, shopDB, archiveDB := newTenant(t), open(t, sharedServer(t)), open(t, archiveServer(t))
	shop, archive := n.operate(t, shopDB.Server), n.operateArchive(t)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"SELECT"}}}
	}).Spec.User
	n.provisioned(t, "alice")
	shop.Requests.Take()
	shop.calls.Take()
	archive.Requests.Take()

	seen := make(chan struct{})
	shop.calls.intercept(func(call string, _ accounts.Account) error {
		if call == "Drop" {
			<-seen
		}
		return nil
	})
	n.relabel(t, "alice", n.unique("archive"))
	waiting := ready(n.settled(t, "alice", "WaitingForRelease"))
	assert.Equal(t, `the operator for target "`+n.unique("shop")+`" has yet to release the account`, waiting.Message)
	assert.Empty(t, archiveDB.accounts(t, n))
	assert.Empty(t, archive.calls.Take())
	close(seen)
	u := n.provisioned(t, "alice")
	assert.Equal(t, n.unique("archive"), u.Status.Target)
	assert.Empty(t, shopDB.accounts(t, n), "the old account is gone")
	assert.NoError(t, archiveDB.login(user, "swordfish"))
	assert.Len(t, archiveDB.grants(t, user, "%"), 1)

	archive.pass(t, n, "alice")
	n.provisioned(t, "alice")
	released, made := shop.Requests.Take()["PATCH databaseusers/status"], archive.Requests.Take()["PATCH databaseusers/status"]
	t.Logf("status writes: %d by the operator that released the account, %d by the one that made it anew", released, made)
	assert.LessOrEqual(t, released, 3, "one, and what is lost to the other one")
	assert.LessOrEqual(t, made, 5, "it waits, records what it is going to make, has made it")
	assert.Empty(t, n.unserved(t, shop, "alice"))
	calls := shop.calls.Take()
	assert.Equal(t, []string{"Drop " + user}, slices.Compact(calls))
	assert.LessOrEqual(t, len(calls), 2, "once more after a lost race")

	// It is kept where it was, and the way back is refused what nobody has released.
	n.set(t, "alice", func(s *spec) { s.DeletionPolicy = userv1alpha1.DeletionRetain })
	n.provisioned(t, "alice")
	n.relabel(t, "alice", strings.ToUpper(n.unique("shop"))) // in any case
	operatortest.Eventually(t, "it is back", func(c *assert.CollectT) { assert.NoError(c, shopDB.login(user, "swordfish")) })
	n.provisioned(t, "alice")
	assert.NoError(t, archiveDB.login(user, "swordfish"), "retained")
	n.relabel(t, "alice", n.unique("archive"))
	n.settled(t, "alice", "AccountExists")
}

// unserved returns what an operator writes for a DatabaseUser that somebody changes.
func (n *tenant) unserved(t *testing.T, o *operator, name string) map[string]int {
	t.Helper()
	operatortest.Change(t, n, n.user(name), func(u *userv1alpha1.DatabaseUser) {
		u.Annotations = map[string]string{"example.com/touched": "once more"}
	})
	n.create(t, "bystander")
	n.settled(t, "bystander", "SecretNotFound") // by then it has seen the other event
	got := o.Requests.Take()
	delete(got, "PATCH databaseusers") // the bystander's finalizer
	assert.Equal(t, 1, got["PATCH databaseusers/status"], "the bystander's")
	delete(got, "PATCH databaseusers/status")
	return got
}

// TestRelabelledWhileDown changes the label while the operator is down.
func TestRelabelledWhileDown(t *testing.T) {
	t.Parallel()
	n, shopDB, archiveDB := newTenant(t), open(t, sharedServer(t)), open(t, archiveServer(t))
	shop := n.operate(t, shopDB.Server)
	for _, name := range []string{"alice", "bob", "carol"} {
		n.setPassword(t, name, "swordfish")
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) { u.Finalizers = []string{"example.com/hold"} })
	}
	for _, name := range []string{"alice", "bob", "carol"} {
		n.provisioned(t, name)
	}
	shop.Stop()
	n.relabel(t, "alice", n.unique("archive"))
	n.relabel(t, "bob", "")
	n.relabel(t, "carol", n.unique("archive"))
	require.NoError(t, n.Delete(t.Context(), n.user("carol")))
	n.operateArchive(t)
	n.settled(t, "alice", "WaitingForRelease")
	assert.Len(t, shopDB.accounts(t, n), 3)

	shop = n.operate(t, shopDB.Server)
	n.provisioned(t, "alice")
	assert.NoError(t, archiveDB.login(n.unique("alice"), "swordfish"))
	bob := n.settled(t, "bob", "Released")
	assert.Equal(t, `nobody serves this DatabaseUser: it has no label "target"`, ready(bob).Message)
	assert.Empty(t, bob.Status.Hosts)
	operatortest.Eventually(t, "who made the account drops it, though the label names another", func(c *assert.CollectT) {
		assert.Equal(c, []string{"example.com/hold"}, operatortest.Live(c, n, n.user("carol")).Finalizers)
	})
	assert.Empty(t, shopDB.accounts(t, n))
	assert.Equal(t, []string{n.unique("alice") + "@%"}, archiveDB.accounts(t, n))
	for _, name := range []string{"bob", "carol"} {
		operatortest.Change(t, n, n.user(name), func(u *userv1alpha1.DatabaseUser) {
			u.Finalizers = strings.Fields(strings.ReplaceAll(strings.Join(u.Finalizers, " "), "example.com/hold", ""))
		})
	}
	require.NoError(t, n.Delete(t.Context(), n.user("bob")))
	n.Gone(t, n.user("bob"), n.user("carol"))
	shop.Stop()
}

// TestServedByNobody checks that a DatabaseUser without the label, or with another value, is left alone.
func TestServedByNobody(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	for name, labels := range map[string]map[string]string{
		"none": nil, "other": {"target": n.unique("archive")}, "empty": {"target": ""}, "longer": {"target": n.unique("shop") + "s"}, "elsewhere": {"label": n.unique("shop")},
	} {
		n.setPassword(t, name, "swordfish")
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) { u.Labels = labels })
		n.set(t, name, func(s *spec) { s.Hosts = []string{"127.0.0.1"} })
		before := operatortest.Live(t, n, n.user(name))
		n.setPassword(t, "bystander", name)
		n.create(t, "bystander")
		n.provisioned(t, "bystander")
		require.NoError(t, n.Delete(t.Context(), n.user("bystander")))
		n.Gone(t, n.user("bystander"))
		after := operatortest.Live(t, n, n.user(name))
		assert.Equal(t, before, after, "nothing is written")
		assert.Empty(t, after.Finalizers)
		assert.Empty(t, db.accounts(t, n))
	}
	n.relabel(t, "none", strings.ToUpper(n.unique("shop")))
	n.provisioned(t, "none")
}
