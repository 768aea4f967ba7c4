package test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

func retain(u *userv1alpha1.DatabaseUser) { u.Spec.DeletionPolicy = userv1alpha1.DeletionRetain }

// hold keeps the object after the operator's finalizer was removed, so that its last status can be read.
func hold(u *userv1alpha1.DatabaseUser) { u.Finalizers = append(u.Finalizers, "example.com/hold") }

func (n *tenant) delete(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, n.Delete(t.Context(), n.user(name)))
	}
}

func TestDeleted(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	names := []string{"dropped", "already-gone", "retained", "no-secret", "paused"}
	for _, name := range names {
		n.setPassword(t, name, "swordfish")
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) { u.Spec.Hosts = []string{"%", "127.0.0.1"} })
	}
	for _, name := range names {
		n.provisioned(t, name)
	}
	db.execute(t, "DROP USER `"+n.unique("already-gone")+"`@`%`, `"+n.unique("already-gone")+"`@`127.0.0.1`")
	n.set(t, "retained", func(s *spec) { s.DeletionPolicy = userv1alpha1.DeletionRetain })
	require.NoError(t, n.Delete(t.Context(), n.secret("no-secret")))
	n.settled(t, "no-secret", "SecretNotFound")
	n.delete(t, names...)
	for _, name := range names {
		n.Gone(t, n.user(name))
	}
	assert.Equal(t, []string{n.unique("retained") + "@%", n.unique("retained") + "@127.0.0.1"}, db.accounts(t, n))
	assert.NoError(t, db.login(n.unique("retained"), "swordfish"))
}

// TestDeletedWithoutDatabase deletes DatabaseUsers while the database is down: only those that do not need it are gone at once;
// the others show why they wait.
func TestDeletedWithoutDatabase(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t))
	o := n.operate(t, db.Server)
	edits := map[string]func(*userv1alpha1.DatabaseUser){"frozen": retain, "down": retain, "waits": func(*userv1alpha1.DatabaseUser) {}, "abandoned": hold}
	for name, edit := range edits {
		n.setPassword(t, name, "swordfish")
		n.create(t, name, edit)
	}
	for name := range edits {
		n.provisioned(t, name)
	}
	o.calls.Take()

	require.NoError(t, db.Freeze())
	n.delete(t, "frozen")
	n.Gone(t, n.user("frozen"))
	require.NoError(t, db.Thaw())
	require.NoError(t, db.Down())
	n.delete(t, "down")
	n.Gone(t, n.user("down"))
	assert.Empty(t, o.calls.Take(), "what is retained needs no database")

	n.delete(t, "waits", "abandoned")
	for _, name := range []string{"waits", "abandoned"} {
		got := n.settled(t, name, "DatabaseUnreachable")
		assert.Contains(t, ready(got).Message, "the database at "+db.Address()+" cannot be reached: ")
		assert.Contains(t, got.Finalizers, controller.Finalizer)
		assert.Equal(t, metav1.ConditionFalse, ready(got).Status)
	}
	annotate := func(value string) {
		operatortest.Change(t, n, n.user("abandoned"), func(u *userv1alpha1.DatabaseUser) {
			metav1.SetMetaDataAnnotation(&u.ObjectMeta, controller.AbandonAnnotation, value)
		})
	}
	annotate("false")
	o.pass(t, n, "abandoned")
	assert.Contains(t, operatortest.Live(t, n, n.user("abandoned")).Finalizers, controller.Finalizer)
	annotate("true")
	operatortest.Eventually(t, "it is given up", func(c *assert.CollectT) {
		u := operatortest.Live(c, n, n.user("abandoned"))
		assert.Equal(c, []string{"example.com/hold"}, u.Finalizers)
		assert.Equal(c, "Abandoned", ready(u).Reason)
		assert.Contains(c, ready(u).Message, "account "+n.unique("abandoned")+" on hosts % may still be there")
		var events eventsv1.EventList
		require.NoError(c, n.List(t.Context(), &events, client.InNamespace(n.Namespace)))
		assert.True(c, slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Reason == "Abandoned" && e.Type == corev1.EventTypeWarning && e.Regarding.Name == "abandoned"
		}), "an event says so")
	})
	require.NoError(t, db.Up(t.Context()))
	n.Gone(t, n.user("waits"))
	assert.ElementsMatch(t, []string{n.unique("abandoned") + "@%", n.unique("down") + "@%", n.unique("frozen") + "@%"}, db.accounts(t, n))
}

// TestAbandonedWithoutItsOperator checks that any operator finishes the deletion of a DatabaseUser that is abandoned.
func TestAbandonedWithoutItsOperator(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	n.provisioned(t, "alice")
	o.Stop()
	n.operateArchive(t)
	n.delete(t, "alice")
	n.create(t, "bystander", func(u *userv1alpha1.DatabaseUser) { u.Labels["target"] = n.unique("archive") })
	n.settled(t, "bystander", "SecretNotFound")
	assert.Contains(t, operatortest.Live(t, n, n.user("alice")).Finalizers, controller.Finalizer)
	operatortest.Change(t, n, n.user("alice"), func(u *userv1alpha1.DatabaseUser) {
		u.Annotations = map[string]string{controller.AbandonAnnotation: "true"}
	})
	n.Gone(t, n.user("alice"))
	assert.Len(t, db.accounts(t, n), 1)
}

// TestNamespaceIsDeleted checks that the deletion of a namespace waits for the database, and then ends.
func TestNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	n, db := newTenantOn(t, cluster(t)), open(t, startServer(t))
	n.operate(t, db.Server)
	for _, name := range []string{"alice", "bob"} {
		n.setPassword(t, name, "swordfish")
		n.create(t, name)
		n.provisioned(t, name)
	}
	require.NoError(t, db.Down())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Namespace}}
	require.NoError(t, n.Delete(t.Context(), namespace))
	for _, name := range []string{"alice", "bob"} {
		n.settled(t, name, "DatabaseUnreachable")
	}
	require.NoError(t, db.Up(t.Context()))
	n.Gone(t, n.user("alice"), n.user("bob"), namespace)
	assert.Empty(t, db.accounts(t, n))
}
