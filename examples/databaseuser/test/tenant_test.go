package test

import (
	"context"
	"database/sql"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

const (
	// patience is for what should happen at once, on a machine that is busy with other tests.
	patience = 45 * time.Second
	interval = 20 * time.Millisecond

	touched = "example.com/touched"
)

// shared is the server of the tests that neither stop it nor read its log.
var shared = sync.OnceValues(func() (*mariadb.Server, error) { return mariadb.Start(context.Background()) })

func sharedServer(t *testing.T) *mariadb.Server {
	t.Helper()
	s, err := shared()
	require.NoError(t, err)
	return s
}

func startServer(t *testing.T, options ...mariadb.Option) *mariadb.Server {
	t.Helper()
	s, err := mariadb.Start(t.Context(), options...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, userv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// tenant is the test's own access to a namespace, as an administrator. Its names in databases are nobody else's.
type tenant struct {
	client.WithWatch
	cp        *controlplane.ControlPlane
	namespace string
	suffix    string
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	cp, _ := withCRD(t)
	c, err := client.NewWithWatch(cp.Config(), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	namespace := controlplanetest.Namespace(t, cp)
	return &tenant{WithWatch: c, cp: cp, namespace: namespace, suffix: namespace[strings.LastIndex(namespace, "-"):]}
}

// unique makes a name of a user, a database or a target the tenant's own.
func (n *tenant) unique(name string) string { return name + n.suffix }

func (n *tenant) user(name string) *userv1alpha1.DatabaseUser {
	return &userv1alpha1.DatabaseUser{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}}
}

func (n *tenant) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}}
}

// create creates a DatabaseUser of a name with the password in the Secret of the same name, for the target shop.
func (n *tenant) create(t *testing.T, name string, edits ...func(*userv1alpha1.DatabaseUser)) *userv1alpha1.DatabaseUser {
	t.Helper()
	u := n.user(name)
	u.Labels = map[string]string{userv1alpha1.TargetLabel: n.unique("shop")}
	u.Spec.User = n.unique(name)
	u.Spec.Password = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "password"}
	for _, edit := range edits {
		edit(u)
	}
	require.NoError(t, n.Create(t.Context(), u))
	return u
}

// setPassword writes a Secret, whether it is there or not.
func (n *tenant) setPassword(t *testing.T, name, password string) {
	t.Helper()
	s := n.secret(name)
	s.Data = map[string][]byte{"password": []byte(password)}
	err := n.Create(t.Context(), s)
	if err != nil {
		err = n.Update(t.Context(), s)
	}
	require.NoError(t, err)
}

// live reads an object that must be there, with nothing left of what it was.
func live[T client.Object](t require.TestingT, n *tenant, obj T) T {
	key := client.ObjectKeyFromObject(obj)
	reflect.ValueOf(obj).Elem().SetZero()
	require.NoError(t, n.Get(context.Background(), key, obj))
	return obj
}

// change edits an object by a merge patch, like kubectl edit.
func change[T client.Object](t *testing.T, n *tenant, obj T, edit func(T)) {
	t.Helper()
	before := live(t, n, obj).DeepCopyObject().(T)
	edit(obj)
	require.NoError(t, n.Patch(t.Context(), obj, client.MergeFrom(before)))
}

func (n *tenant) set(t *testing.T, name string, edit func(*userv1alpha1.DatabaseUserSpec)) {
	t.Helper()
	change(t, n, n.user(name), func(u *userv1alpha1.DatabaseUser) { edit(&u.Spec) })
}

func (n *tenant) relabel(t *testing.T, name, target string) {
	t.Helper()
	change(t, n, n.user(name), func(u *userv1alpha1.DatabaseUser) {
		u.Labels = map[string]string{userv1alpha1.TargetLabel: target}
		if target == "" {
			u.Labels = nil
		}
	})
}

func eventually(t *testing.T, what string, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, patience, interval, what)
}

func ready(u *userv1alpha1.DatabaseUser) userv1alpha1.Condition {
	for _, c := range u.Status.Conditions {
		if c.Type == conditions.Ready {
			return c
		}
	}
	return userv1alpha1.Condition{}
}

// settled waits until the condition Ready has a reason, about the present spec, and gives the object.
func (n *tenant) settled(t *testing.T, name, reason string) *userv1alpha1.DatabaseUser {
	t.Helper()
	u := n.user(name)
	eventually(t, name+" becomes "+reason, func(c *assert.CollectT) {
		got := ready(live(c, n, u))
		assert.Equal(c, u.Generation, u.Status.ObservedGeneration)
		assert.Equal(c, reason, got.Reason, got.Message)
	})
	return u
}

func (n *tenant) provisioned(t *testing.T, name string) *userv1alpha1.DatabaseUser {
	t.Helper()
	return n.settled(t, name, "ProvisionSucceeded")
}

// gone waits until an object does not exist.
func (n *tenant) gone(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		eventually(t, obj.GetName()+" goes", func(c *assert.CollectT) {
			err := n.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
			assert.NoError(c, client.IgnoreNotFound(err))
			assert.Error(c, err)
		})
	}
}

// database is a server as its owner sees it.
type database struct {
	*mariadb.Server
	root *sql.DB
}

func open(t *testing.T, s *mariadb.Server) *database {
	t.Helper()
	root := s.OpenRoot()
	t.Cleanup(func() { _ = root.Close() }) // which may tell of a connection that the server has ended
	return &database{s, root}
}

func (d *database) execute(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := d.root.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

// lines gives the first column of what a query finds.
func (d *database) lines(t require.TestingT, query string, args ...any) []string {
	rows, err := d.root.QueryContext(context.Background(), query, args...)
	require.NoError(t, err, query)
	defer rows.Close()
	all := []string{}
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}

// accounts gives the accounts whose names end as the tenant's do, as user@host.
func (d *database) accounts(t require.TestingT, n *tenant) []string {
	return d.lines(t, "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE User LIKE ? ORDER BY 1", "%"+n.suffix)
}

// grants gives what an account may do, in the server's words, but for what it says of the account itself.
func (d *database) grants(t require.TestingT, user, host string) []string {
	return d.lines(t, "SHOW GRANTS FOR `"+user+"`@`"+host+"`")[1:]
}

// login tries a password.
func (d *database) login(user, password string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.CanLogIn(ctx, mariadb.Credentials{User: user, Password: password})
}
