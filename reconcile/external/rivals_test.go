package external_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile/external"
)

// TestPanicEndsAClaim: a function panics while the object is getting a key. Afterwards another object can get it.
func TestPanicEndsAClaim(t *testing.T) {
	c := newCommunity(t, func(r *external.Resource[*Account, entry]) {
		r.Admit = nil
		r.Adopt = func(*Account, entry) error { panic("oops") }
	})
	c.create("x", "alice")
	c.create("y", "carol")
	c.api.entries["alice"] = entry{Login: "alice", Owner: "them"}
	c.api.entries["bob"] = entry{Login: "bob", Owner: "them"}
	run := func(name string) string {
		_, _ = c.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.get(name))})
		ready, _ := conditions.Get(c.get(name).Status.Conditions, conditions.Ready)
		return ready.Reason
	}
	require.Contains(t, run("x"), "Panicked")
	c.rename("x", "bob")
	require.Contains(t, run("x"), "Panicked")
	delete(c.api.entries, "alice")
	c.rename("y", "alice")
	require.Contains(t, run("y"), "Succeeded", "x neither has nor wants alice")
}

// TestSharedKeyOtherID: two objects have things with the same key and different IDs. One object is deleted.
func TestSharedKeyOtherID(t *testing.T) {
	d := &tagged{byID: map[string]entry{}}
	var withOthers bool
	c := newCommunity(t, func(r *external.Resource[*Account, entry]) {
		d.edit(r)
		r.Identity = external.ByToken
		r.Keys, r.Group = nil, nil
		r.Key = func(a *Account) string { return a.Spec.Login }
		others := r.Others
		r.Others = func(ctx context.Context, cl client.Reader, a *Account, g string) ([]*Account, error) {
			if !withOthers {
				return nil, nil // an earlier release had no function Others
			}
			return others(ctx, cl, a, g)
		}
	})
	c.create("x", "alice")
	c.create("y", "alice")
	c.pass("x")
	c.pass("y")
	require.Len(t, d.byID, 2)
	withOthers = true
	require.NoError(t, c.Delete(t.Context(), c.get("x")))
	_, err := c.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "x"}})
	require.NoError(t, err)
	require.Error(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &Account{}))
	require.Len(t, d.byID, 1, "what y has is another thing")
}

// TestClaimedIsSettled: an object waits for a key. Its record has a pending creation with another key, which a third
// object wants.
func TestClaimedIsSettled(t *testing.T) {
	c := newCommunity(t, nil)
	c.create("y", "bob")
	c.create("x", "bob")
	c.create("z", "alice")
	c.pass("y")
	x := c.get("x")
	x.Status.Account = external.Record{Things: []external.Reference{{Key: "alice", Pending: true, Since: new(metav1.NewTime(time.Now().Add(-time.Hour)))}}}
	require.NoError(t, c.Status().Update(t.Context(), x))
	c.pass("x")
	require.Equal(t, succeeded, c.pass("z"), "nothing was created for x, and x does not want it")
}

// TestWhoCreatesNothingHasNoClaim: an older object does not create things, so a younger object does not wait for it.
func TestWhoCreatesNothingHasNoClaim(t *testing.T) {
	is := func(a *Account) bool { return a.Name == "x" }
	for name, edit := range map[string]func(*external.Resource[*Account, entry]){
		"it only observes":                func(r *external.Resource[*Account, entry]) { r.ObserveOnly = is },
		"it waits until the thing exists": func(r *external.Resource[*Account, entry]) { r.MustExist = is },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommunity(t, edit)
			c.create("x", "alice")
			c.create("z", "alice")
			c.pass("x")
			require.Equal(t, succeeded, c.pass("z"))
		})
	}
}
