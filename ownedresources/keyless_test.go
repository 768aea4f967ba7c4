package ownedresources

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// The names of the keys take as much as their values, so that the managed fields double the object's size. The API server creates
// the object without them, and cannot apply it any more.
func TestApplyOfALargeObject(t *testing.T) {
	env := newServerEnv(t)
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{}}
	for i := range 2_500 {
		want.Data[fmt.Sprintf("%05d%s", i, strings.Repeat("k", 240))] = strings.Repeat("x", 140)
	}
	env.expect(t, want, apply.Created, "POST configmaps")
	env.expect(t, want, apply.Unchanged, none...)
	want = want.DeepCopy()
	want.Data["another"] = "x"
	_, err := env.apply(t, want)
	require.ErrorContains(t, err, "split the object")

	small := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"a": "b"}}
	_, err = env.apply(t, small)
	require.ErrorContains(t, err, "delete the live object", "the API server adds the managed fields of the live object first")
	require.NoError(t, env.other.Delete(t.Context(), small.DeepCopy()))
	env.expect(t, small, apply.Created, "POST configmaps")
}

// Anybody can write an item without the key of its list. The API server then refuses every server-side apply of the object.
func TestApplyBesideAnItemWithoutAKey(t *testing.T) {
	env := newServerEnv(t)
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
			env.expect(t, want(true, "dropped"), apply.Created, "POST serviceaccounts")
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
				env.expect(t, want(automounts, ""), apply.Unchanged, none...)
			}
			changes, err := Diff(t.Context(), env.client, env.owner, want(true, ""))
			require.NoError(t, err)
			require.Equal(t, []preview.Difference{{Path: "automountServiceAccountToken", Have: "false", Want: "true"}}, changes[0].Differences)

			byHand(t, env, live, func(account *corev1.ServiceAccount) { account.Secrets = nil })
			_, err = env.apply(t, want(true, ""))
			require.NoError(t, err)
			env.expect(t, want(true, ""), apply.Unchanged, none...)
			require.NoError(t, env.other.Delete(t.Context(), live))
		})
	}
}
