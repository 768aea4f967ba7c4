package ownedresources

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The names of the keys take as much as their values, so that the managed fields double the object's size.
func TestApplyOfALargeObject(t *testing.T) {
	env := newTestEnv(t)
	key := func(i int) string { return fmt.Sprintf("%05d%s", i, strings.Repeat("k", 240)) }
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large", Labels: map[string]string{"dropped": "x"}}, Data: map[string]string{}}
	for i := range 2_500 {
		want.Data[key(i)] = strings.Repeat("x", 140)
	}
	live := &corev1.ConfigMap{}
	read := func() {
		require.NoError(t, env.other.Get(t.Context(), types.NamespacedName{Namespace: env.namespace, Name: "large"}, live))
	}
	env.expect(t, want, Created, "POST configmaps")
	env.expect(t, want, Unchanged, none...)
	read()
	require.Empty(t, live.ManagedFields, "the API server drops what is too large")

	for _, value := range []string{"1", "2"} {
		want = want.DeepCopy()
		want.Labels = nil
		want.Data[key(0)] = value
		delete(want.Data, key(len(want.Data)-1))
		_, err := env.apply(t, want)
		require.NoError(t, err)
		require.LessOrEqual(t, len(env.sent.Sent()), 5)
		read()
		require.Equal(t, want.Data, live.Data)
		require.Empty(t, live.Labels)
		env.expect(t, want, Unchanged, none...)
	}

	live.Data[key(1)], live.Data["theirs"] = "drift", "x"
	require.NoError(t, env.other.Update(t.Context(), live))
	_, err := env.apply(t, want)
	require.NoError(t, err)
	read()
	require.Equal(t, "x", live.Data["theirs"], "a repair removes nothing")
	require.Equal(t, want.Data[key(1)], live.Data[key(1)])
	env.expect(t, want, Unchanged, none...)

	small := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"a": "b"}}
	_, err = env.apply(t, small)
	require.NoError(t, err)
	read()
	require.Equal(t, small.Data, live.Data, "it becomes an ordinary object again")
	env.expect(t, small, Unchanged, none...)
}

// Anybody can write an item without the key of its list. The API server then refuses every server-side apply of the object.
func TestApplyBesideAnItemWithoutAKey(t *testing.T) {
	env := newTestEnv(t)
	want := func(automounts bool, label string) *corev1.ServiceAccount {
		labels := map[string]string{"a": "b"}
		if label != "" {
			labels[label] = "x"
		}
		return &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "web", Labels: labels}, AutomountServiceAccountToken: &automounts,
		}
	}
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprint("Applied=", applied), func(t *testing.T) {
			env.expect(t, want(true, "dropped"), Created, "POST serviceaccounts")
			if applied {
				_, err := env.apply(t, want(false, "dropped"))
				require.NoError(t, err)
			}
			live := &corev1.ServiceAccount{}
			byHand(t, env, live, func(account *corev1.ServiceAccount) {
				account.Secrets = []corev1.ObjectReference{{Namespace: "x"}}
			})
			for _, automounts := range []bool{false, true, false} {
				_, err := env.apply(t, want(automounts, ""))
				require.NoError(t, err)
				env.live(t, live)
				require.Equal(t, automounts, *live.AutomountServiceAccountToken)
				require.Equal(t, []corev1.ObjectReference{{}}, live.Secrets, "it is of others; the API server stores names of secrets only")
				require.NotContains(t, live.Labels, "dropped")
				env.expect(t, want(automounts, ""), Unchanged, none...)
			}
			changes, err := Diff(t.Context(), env.client, env.owner, want(true, ""))
			require.NoError(t, err)
			require.Equal(t, []Difference{{Path: "automountServiceAccountToken", Have: "false", Want: "true"}}, changes[0].Differences)

			byHand(t, env, live, func(account *corev1.ServiceAccount) { account.Secrets = nil })
			_, err = env.apply(t, want(true, ""))
			require.NoError(t, err)
			env.expect(t, want(true, ""), Unchanged, none...)
			require.NoError(t, env.other.Delete(t.Context(), live))
		})
	}
}
