package apply_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/record"
)

// credentials returns a Secret in which the builder sets one key.
func credentials() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"username": "web"}}
}

func TestGenerate(t *testing.T) {
	env := newInMemory(t)
	generate := []ownedtest.Option{withGenerate("password", 24), withGenerate("cookie", 8)}
	require.Equal(t, apply.Created, env.MustApply(t, credentials(), generate...).Operation)
	require.Equal(t, []string{"GET secrets", "POST secrets"}, env.Requests.Sent())
	var live corev1.Secret
	env.Live(t, &live)
	password, cookie := live.Data["password"], live.Data["cookie"]
	require.Len(t, password, 24)
	require.Len(t, cookie, 8)
	requireQuiet := func(message string) {
		t.Helper()
		require.Equal(t, apply.Unchanged, env.MustApply(t, credentials(), generate...).Operation, message)
		require.Equal(t, []string{"GET secrets"}, env.Requests.Sent(), message)
	}
	requireQuiet("the values are not compared")
	env.Applier = apply.New()
	requireQuiet("nor after a restart")

	want := credentials()
	want.StringData["username"] = "other"
	for _, message := range []string{"the first apply takes over the fields of the POST", "a second one"} {
		want.Labels = map[string]string{"times": want.Labels["times"] + "x"}
		env.MustApply(t, want, generate...)
		env.Live(t, &live)
		require.Equal(t, "other", string(live.Data["username"]))
		require.Equal(t, password, live.Data["password"], message)
		require.Equal(t, cookie, live.Data["cookie"], message)
	}

	ownedtest.ByHand(t, env, &live, func(s *corev1.Secret) { s.Data["password"] = []byte("their own") })
	env.MustApply(t, want, generate...)
	require.NotContains(t, env.Requests.Sent(), "PATCH secrets", "a value that a user puts in stays")
	_, err := env.Apply(t, credentials(), generate...) // the generated value survives the next change
	require.NoError(t, err)
	env.Live(t, &live)
	require.Equal(t, "their own", string(live.Data["password"]))

	ownedtest.ByHand(t, env, &live, func(s *corev1.Secret) { delete(s.Data, "password"); s.Data["cookie"] = nil })
	require.Equal(t, apply.Applied, env.MustApply(t, credentials(), generate...).Operation)
	env.Live(t, &live)
	require.Len(t, live.Data["password"], 24, "a deleted key is generated anew")
	require.NotEqual(t, password, live.Data["password"])
	require.Len(t, live.Data["cookie"], 8, "and so is an empty one")
	requireQuiet("a repaired Secret is as desired")
	require.NotContains(t, live.Annotations[record.Applied], string(live.Data["cookie"]))
}

// If a builder sets a key that would otherwise be generated, no value is generated.
func TestGenerateNothingForAValueOfTheAuthor(t *testing.T) {
	env := newInMemory(t)
	given := func(password string) *corev1.Secret {
		s := credentials()
		s.StringData["password"] = password
		return s
	}
	var live corev1.Secret
	for _, step := range []struct{ set, want, why string }{
		{"given", "given", "a value that the author sets is applied"},
		{"changed", "changed", "and its changes are"},
		{"", "changed", "a value that is not set any more stays"},
		{"again", "again", "and can be set again"},
	} {
		env.MustApply(t, given(step.set), withGenerate("password", 8))
		env.Live(t, &live)
		require.Equal(t, step.want, string(live.Data["password"]), step.why)
	}
}

func TestGenerateInAnAdoptedSecret(t *testing.T) {
	env := newInMemory(t)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web"}, Data: map[string][]byte{"password": []byte("theirs")}}
	require.NoError(t, env.Other.Create(t.Context(), theirs))
	env.MustApply(t, credentials(), withAdopt(), withGenerate("password", 8), withGenerate("cookie", 8))
	var live corev1.Secret
	env.Live(t, &live)
	require.Equal(t, "theirs", string(live.Data["password"]))
	require.Len(t, live.Data["cookie"], 8)
}

// The cache may not show a generated value yet. Then the value is not replaced.
func TestGenerateWithAStaleCache(t *testing.T) {
	env := newInMemory(t)
	env.MustApply(t, credentials())
	var stale, live corev1.Secret
	env.Live(t, &stale)
	ownedtest.ByHand(t, env, &live, func(s *corev1.Secret) { s.Data["password"] = []byte("in use already") })

	cached := &staleReader{Client: env.Client, secret: &stale}
	o, err := owned.NewOwner(env.Owner, cached, nil)
	require.NoError(t, err)
	children, err := env.Applier.Declare(&o, []client.Object{credentials()})
	require.NoError(t, err)
	withGenerate("password", 24)(children[0].Options)
	_, err = ownedtest.One(t.Context(), apply.New(), &o, children[0])
	require.NoError(t, err)
	env.Live(t, &live)
	require.Equal(t, "in use already", string(live.Data["password"]))
}

// staleReader reads an old version of a typed Secret.
type staleReader struct {
	client.Client
	secret *corev1.Secret
}

func (r *staleReader) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if secret, typed := obj.(*corev1.Secret); typed {
		r.secret.DeepCopyInto(secret)
		return nil
	}
	return r.Client.Get(ctx, name, obj, options...)
}
