package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile/external"
)

// publishEnv is an env whose API returns a password only when it issues the password.
type publishEnv struct {
	*env
	suffix    string // the end of the name of the Secret
	passwords int    // how many passwords were issued
	before    error  // returned by a write of a Secret that has no effect
	after     error  // returned by a write of a Secret that has an effect
	writes    int    // how many writes of Secrets were sent
}

func newPublishEnv(t *testing.T) *publishEnv {
	t.Helper()
	p := &publishEnv{}
	p.env = newEnv(t, external.ByKey, nil)
	p.Client = interceptor.NewClient(p.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			return p.write(obj, func() error { return c.Create(ctx, obj, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			return p.write(obj, func() error { return c.Patch(ctx, obj, patch, options...) })
		},
	})
	p.begin()
	return p
}

// write writes a Secret by calling do, or fails as the test has set it.
func (p *publishEnv) write(obj client.Object, do func() error) error {
	if obj.GetObjectKind().GroupVersionKind().Kind != "Secret" {
		if _, ok := obj.(*corev1.Secret); !ok {
			return do()
		}
	}
	if p.before != nil {
		return p.before
	}
	p.writes++
	if err := do(); err != nil {
		return err
	}
	return p.after
}

// begin starts the first process.
func (p *publishEnv) begin() {
	r := resource(p.api, external.ByKey)
	r.Clock, r.Others = p.clock, nil
	r.Publish = func(a *Account, state entry) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: a.Name + "-account" + p.suffix},
			StringData: map[string]string{"login": state.Login}, Data: map[string][]byte{"password": nil},
		}
	}
	r.Issue = func(_ context.Context, _ client.Client, _ *Account, ref external.Reference, _ entry) (values map[string][]byte, err error) {
		err = p.api.call("issue "+ref.String(), func() error {
			p.passwords++
			values = map[string][]byte{"password": fmt.Appendf(nil, "pass-%d", p.passwords)}
			return nil
		})
		return values, err
	}
	p.step = external.New(r)
	p.restart()
}

func (p *publishEnv) secret() *corev1.Secret {
	p.t.Helper()
	s := &corev1.Secret{}
	require.NoError(p.t, p.Get(p.t.Context(), types.NamespacedName{Namespace: "default", Name: "alice-account" + p.suffix}, s))
	return s
}

// confirm runs a pass that finds the Secret as it was written. Without a manager, the step gets no event if the Secret
// is deleted later.
func (p *publishEnv) confirm() {
	p.t.Helper()
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	calls, _, _ := p.pass()
	require.Equal(p.t, []string{"get alice"}, calls)
}

func (p *publishEnv) change(change func(s *corev1.Secret)) {
	p.t.Helper()
	s := p.secret()
	change(s)
	require.NoError(p.t, p.Update(p.t.Context(), s))
}

func (p *publishEnv) delete() {
	p.t.Helper()
	require.NoError(p.t, p.Delete(p.t.Context(), p.secret()))
}

func TestPublish(t *testing.T) {
	lost := errors.New("connection reset")
	for name, tc := range map[string]struct {
		reason   string
		do       func(p *publishEnv)
		calls    []string // the calls of the next pass
		password string   // the password after that pass
		writes   bool     // whether the Secret is written
	}{
		"nothing": {"a quiet pass calls nothing", func(*publishEnv) {}, nil, "pass-1", false},
		"due": {"what was issued is kept", func(p *publishEnv) {
			p.clock.SetTime(p.clock.Now().Add(time.Hour))
		}, []string{"get alice"}, "pass-1", false},
		"restart": {"the Secret has the name that is recorded", func(p *publishEnv) { p.restart() }, []string{"get alice"}, "pass-1", false},
		"deleted": {"nobody knows the password any more", func(p *publishEnv) { p.delete() }, []string{"get alice", "issue alice"}, "pass-2", true},
		"deleted, restart": {"as above", func(p *publishEnv) {
			p.delete()
			p.restart()
		}, []string{"get alice", "issue alice"}, "pass-2", true},
		"password changed": {"it is not the password of the account", func(p *publishEnv) {
			p.change(func(s *corev1.Secret) { s.Data["password"] = []byte("other") })
		}, []string{"get alice", "issue alice"}, "pass-2", true},
		"password removed": {"as above", func(p *publishEnv) {
			p.change(func(s *corev1.Secret) { delete(s.Data, "password") })
		}, []string{"get alice", "issue alice"}, "pass-2", true},
		"login changed": {"it is known, so nothing is issued", func(p *publishEnv) {
			p.change(func(s *corev1.Secret) { s.Data["login"] = []byte("other") })
		}, []string{"get alice"}, "pass-1", true},
		"a key of others": {"it does not matter", func(p *publishEnv) {
			p.change(func(s *corev1.Secret) { s.Data["note"] = []byte("mine") })
		}, nil, "pass-1", false},
		"account deleted": {"the new one has another password", func(p *publishEnv) {
			delete(p.api.entries, "alice")
			p.clock.SetTime(p.clock.Now().Add(time.Hour))
		}, []string{"get alice", "create alice", "get alice", "issue alice"}, "pass-2", true},
		"renamed": {"the Secret is of the new account before the former one goes", func(p *publishEnv) {
			p.edit(func(a *Account) { a.Spec.Login = "bob" })
		}, []string{"get bob", "create bob", "get bob", "issue bob", "get alice", "remove alice", "get alice"}, "pass-2", true},
		"restored": {"an old Secret has another name than the one that is recorded", func(p *publishEnv) {
			old := p.secret().DeepCopy()
			p.delete()
			p.pass()
			p.change(func(s *corev1.Secret) { s.Data, s.Annotations = old.Data, old.Annotations })
			p.restart()
		}, []string{"get alice", "issue alice"}, "pass-3", true},
		"write refused": {"what was issued is written as soon as that is possible", func(p *publishEnv) {
			p.delete()
			p.before = lost
			_, reason, _ := p.pass()
			require.Equal(p.t, "Failed", reason)
			p.before = nil
		}, []string{"get alice"}, "pass-2", true},
		"write refused, restart": {"nobody has the one before", func(p *publishEnv) {
			p.delete()
			p.before = lost
			p.pass()
			p.before = nil
			p.restart()
		}, []string{"get alice", "issue alice"}, "pass-3", true},
		"answer lost": {"the Secret has it", func(p *publishEnv) {
			p.delete()
			p.after = lost
			p.pass()
			p.after = nil
		}, []string{"get alice"}, "pass-2", false},
		"answer lost, restart": {"as above", func(p *publishEnv) {
			p.delete()
			p.after = lost
			p.pass()
			p.after = nil
			p.restart()
		}, []string{"get alice"}, "pass-2", false},
		"Secret renamed": {"the former one goes, and the password with it", func(p *publishEnv) {
			p.suffix = "-new"
			p.edit(func(*Account) {})
		}, []string{"get alice", "issue alice"}, "pass-2", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublishEnv(t)
			calls, reason, _ := p.pass()
			require.Equal(t, []string{"get alice", "create alice", "get alice", "issue alice"}, calls)
			require.Equal(t, "Succeeded", reason)
			require.Equal(t, 1, p.writes)
			require.True(t, metav1.IsControlledBy(p.secret(), p.object), "it is deleted with the object")
			p.confirm()
			tc.do(p)
			p.writes = 0
			calls, reason, _ = p.pass()
			require.Equal(t, tc.calls, calls, tc.reason)
			require.Equal(t, "Succeeded", reason, tc.reason)
			require.Equal(t, tc.writes, p.writes > 0, tc.reason)
			require.Equal(t, tc.password, string(p.secret().Data["password"]), tc.reason)
			require.Equal(t, p.object.Spec.Login, string(p.secret().Data["login"]), tc.reason)
			calls, _, _ = p.pass()
			require.Empty(t, calls, "it comes to rest")
			var all corev1.SecretList
			require.NoError(t, p.List(t.Context(), &all))
			require.Len(t, all.Items, 1, "a former Secret goes")
		})
	}
}

func TestSecretOfSomebodyElse(t *testing.T) {
	p := newPublishEnv(t)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice-account"}, Data: map[string][]byte{"password": []byte("theirs")}}
	require.NoError(t, p.Create(t.Context(), theirs))
	p.writes = 0
	calls, reason, _ := p.pass()
	require.Equal(t, []string{"get alice", "create alice", "get alice"}, calls, "nothing is issued that could not be published")
	require.Equal(t, "OwnedByAnother", reason)
	require.Equal(t, "theirs", string(p.secret().Data["password"]))
	require.Zero(t, p.writes)
	p.delete()
	calls, reason, _ = p.pass()
	require.Equal(t, []string{"get alice", "issue alice"}, calls)
	require.Equal(t, "Succeeded", reason)
}

// TestSecretThatIsBeingDeleted proves that nothing is issued while the Secret is being deleted and somebody else's
// finalizer keeps it.
func TestSecretThatIsBeingDeleted(t *testing.T) {
	p := newPublishEnv(t)
	p.pass()
	p.confirm()
	p.change(func(s *corev1.Secret) {
		s.Finalizers, s.Data["password"] = []string{"example.com/backup"}, []byte("other")
	})
	p.delete()
	for range 3 {
		calls, reason, _ := p.pass()
		require.Equal(t, []string{"get alice"}, calls)
		require.Equal(t, "ChildTerminating", reason)
	}
	p.change(func(s *corev1.Secret) { s.Finalizers = nil })
	calls, reason, _ := p.pass()
	require.Equal(t, []string{"get alice", "issue alice"}, calls)
	require.Equal(t, "Succeeded", reason)
	require.Equal(t, "pass-2", string(p.secret().Data["password"]))
}

// TestRepairIsUrgent: a part of the quota is only for urgent passes. If somebody changes the Secret, the repair may
// use that part.
func TestRepairIsUrgent(t *testing.T) {
	p := newPublishEnv(t)
	p.step.Quota = rate.NewLimiter(rate.Every(time.Hour), 5) // the first pass takes 4 of the 5 calls
	p.restart()
	p.pass()
	p.change(func(s *corev1.Secret) { s.Data["login"] = []byte("other") })
	calls, reason, _ := p.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, "Succeeded", reason)
	require.Equal(t, "alice", string(p.secret().Data["login"]))
}

// TestNothingSecretIsShown looks for a password in the status, in the log and in the error of a write, which people
// can read.
func TestNothingSecretIsShown(t *testing.T) {
	p := newPublishEnv(t)
	var logs strings.Builder
	logger := funcr.New(func(_, line string) { logs.WriteString(line + "\n") }, funcr.Options{Verbosity: 9})
	ctx := log.IntoContext(t.Context(), logger)
	p.before = apierrors.NewForbidden(corev1.Resource("secrets"), "alice-account", errors.New("no"))
	for range 2 {
		_, err := p.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: p.name()})
		require.NoError(t, err)
		require.NoError(t, p.Get(t.Context(), p.name(), p.object))
		shown, err := json.Marshal(p.object)
		require.NoError(t, err)
		require.NotContains(t, string(shown), "pass-")
		p.before = nil
	}
	require.True(t, conditions.IsTrue(p.object.Status.Conditions, conditions.Ready))
	require.Equal(t, "pass-1", string(p.secret().Data["password"]))
	require.Contains(t, logs.String(), "alice-account")
	require.NotContains(t, logs.String(), "pass-")
	metadata, err := json.Marshal(p.secret().ObjectMeta)
	require.NoError(t, err)
	require.NotContains(t, string(metadata), "pass-")
}

// TestIssueReturnsTooLittle: the author's function Issue does not return all values.
func TestIssueReturnsTooLittle(t *testing.T) {
	p := newPublishEnv(t)
	p.step.Issue = func(context.Context, client.Client, *Account, external.Reference, entry) (map[string][]byte, error) {
		return nil, nil
	}
	_, reason, _ := p.pass()
	require.Equal(t, "Publishing", reason)
	require.Zero(t, p.writes)
}

// TestNothingIsIssuedByAnObserver: an object only observes, and its password is removed from the Secret. No new one
// is issued.
func TestNothingIsIssuedByAnObserver(t *testing.T) {
	p := newPublishEnv(t)
	p.pass()
	p.step.ObserveOnly = func(*Account) bool { return true }
	calls, reason, _ := p.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, "Succeeded", reason)
	p.delete()
	calls, reason, _ = p.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, "Publishing", reason)
}

// TestIssuingEnds: from some time on, Publish returns a Secret that needs no issued value.
func TestIssuingEnds(t *testing.T) {
	p := newPublishEnv(t)
	p.pass()
	p.confirm()
	p.step.Publish = func(a *Account, _ entry) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: a.Name + "-account"}, Data: map[string][]byte{"login": []byte("alice")}}
	}
	p.edit(func(*Account) {})
	calls, _, _ := p.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.NotContains(t, p.secret().Data, "password")
	require.NotContains(t, p.secret().Annotations, "opblocks.dev/issued")
	require.Empty(t, p.object.Status.Account.Issued)
	calls, _, _ = p.pass()
	require.Empty(t, calls, "it comes to rest")
}

// TestPublishingEnds: from some time on, Publish returns no Secret.
func TestPublishingEnds(t *testing.T) {
	p := newPublishEnv(t)
	p.pass()
	p.step.Publish = func(*Account, entry) *corev1.Secret { return nil }
	p.edit(func(*Account) {})
	p.pass()
	var all corev1.SecretList
	require.NoError(t, p.List(t.Context(), &all))
	require.Empty(t, all.Items)
	calls, _, _ := p.pass()
	require.Empty(t, calls, "it comes to rest")
}
