package external_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// withSecret makes a resource publish a Secret with a password. issued counts the calls of Issue.
func withSecret(issued *int) func(r *external.Resource[*Account, entry]) {
	return func(r *external.Resource[*Account, entry]) {
		r.ObserveOnly = func(a *Account) bool { return a.Spec.Retain }
		r.Retain = nil
		r.Publish = func(_ *Account, s entry) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"login": []byte(s.Login), "password": nil}}
		}
		r.Issue = func(_ context.Context, _ client.Client, _ *Account, _ external.Reference, s entry) (map[string][]byte, error) {
			*issued++
			return map[string][]byte{"password": []byte("of " + s.Login)}, nil
		}
	}
}

// TestCredentialOfAnotherThing: a credential was issued for one thing. Then the object observes another thing, which
// has no credential.
func TestCredentialOfAnotherThing(t *testing.T) {
	n := 0
	e := newEnv(t, external.ByKey, withSecret(&n))
	reason := e.try()
	require.Contains(t, reason, "Succeeded")
	e.api.entries["bob"] = entry{Login: "bob", Owner: "them", Quota: 1}
	e.edit(func(a *Account) { a.Spec.Retain, a.Spec.Login = true, "bob" })
	reason = e.try()
	require.Contains(t, reason, "Publishing", "nothing was issued for bob")
	var s corev1.Secret
	require.NoError(t, e.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "s"}, &s))
	require.Equal(t, "alice", string(s.Data["login"]))
	require.Equal(t, "of alice", string(s.Data["password"]))
	e.edit(func(a *Account) { a.Spec.Login = "alice" })
	reason = e.try()
	require.Contains(t, reason, "Succeeded")
	require.Equal(t, 1, n)
}

// TestNameIsTakenAndBack changes the key to a name that somebody else has, and back.
func TestNameIsTakenAndBack(t *testing.T) {
	n := 0
	e := newEnv(t, external.ByKey, withSecret(&n))
	reason := e.try()
	require.Contains(t, reason, "Succeeded")
	e.api.entries["bob"] = entry{Login: "bob", Owner: "them"}
	e.edit(func(a *Account) { a.Spec.Login = "bob" })
	reason = e.try()
	require.Contains(t, reason, "AlreadyExists")
	e.edit(func(a *Account) { a.Spec.Login = "alice" })
	reason = e.try()
	require.Contains(t, reason, "Succeeded")
	require.Equal(t, 1, n, "nothing was wrong with the credential")
}

// TestRepairedAndNotReady repairs a Secret although the thing is not ready.
func TestRepairedAndNotReady(t *testing.T) {
	isReady, n := true, 0
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		withSecret(&n)(r)
		r.Ready = func(*Account, entry, entry) error {
			if !isReady {
				return reconcile.Wait("Preparing", 5*time.Second, "not ready")
			}
			return nil
		}
	})
	reason := e.try()
	require.Contains(t, reason, "Succeeded")
	isReady = false
	var s corev1.Secret
	require.NoError(t, e.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "s"}, &s))
	s.Data["password"] = []byte("other")
	require.NoError(t, e.Client.Update(t.Context(), &s))
	reason = e.try()
	require.Contains(t, reason, "Preparing")
	e.later(5 * time.Second)
	reason = e.try()
	require.Contains(t, reason, "Preparing")
}
