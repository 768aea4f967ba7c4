package apply_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// If somebody changes the key of a list item, server-side apply takes it for another item.
func TestApplyRepairsTheKeyOfAnItem(t *testing.T) {
	t.Run("ServicePort", func(t *testing.T) {
		w := newServer(t)
		w.Expect(t, w.Service(), apply.Created, "POST services")
		var live corev1.Service
		for range 2 {
			ownedtest.ByHand(t, w, &live, func(s *corev1.Service) {
				s.Spec.Ports[0].Port = 8080
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "theirs", Port: 9999})
			})
			w.MustApply(t, w.Service())
			w.Live(t, &live)
			require.Len(t, live.Spec.Ports, 2, "an item without a value of ours stays")
			w.Settled(t, w.Service())
			ownedtest.ByHand(t, w, &live, func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[1:] })
			w.Settled(t, w.Service())
		}
		want := w.Service()
		want.Spec.Ports = []corev1.ServicePort{{Name: "other", Port: 81}}
		w.MustApply(t, want)
		w.Live(t, &live)
		require.Len(t, live.Spec.Ports, 1, "the item in its place is ours, and is removed when it is not desired")
		w.Settled(t, want)
	})
	t.Run("ContainerPort", func(t *testing.T) {
		w := newServer(t)
		w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
		var live appsv1.Deployment
		ownedtest.ByHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 80 })
		w.MustApply(t, w.Deployment())
		w.Live(t, &live)
		require.EqualValues(t, 8080, live.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort)
		require.Len(t, live.Spec.Template.Spec.Containers[0].Ports, 1)
		w.Settled(t, w.Deployment())
	})
	t.Run("ContainerName", func(t *testing.T) {
		w := newServer(t)
		w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
		var live appsv1.Deployment
		ownedtest.ByHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "renamed" })
		w.MustApply(t, w.Deployment())
		w.Settled(t, w.Deployment())
	})
}

// Anybody can write a list item without the key of its list. Then the API server refuses every server-side apply of the object.
func TestApplyBesideAnItemWithoutAKey(t *testing.T) {
	env := newRealServer(t)
	want := func(automounts bool, label string) *corev1.ServiceAccount {
		labels := map[string]string{"a": "b"}
		if label != "" {
			labels[label] = "x"
		}
		return &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web", Labels: labels}, AutomountServiceAccountToken: &automounts,
		}
	}
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprint("Applied=", applied), func(t *testing.T) {
			env.Expect(t, want(true, "dropped"), apply.Created, "POST serviceaccounts")
			if applied {
				env.MustApply(t, want(false, "dropped"))
			}
			live := &corev1.ServiceAccount{}
			ownedtest.ByHand(t, env, live, func(account *corev1.ServiceAccount) {
				account.Secrets = []corev1.ObjectReference{{Namespace: "x"}}
			})
			for _, automounts := range []bool{false, true, false} {
				env.MustApply(t, want(automounts, ""))
				env.Live(t, live)
				require.Equal(t, automounts, *live.AutomountServiceAccountToken)
				require.Equal(t, []corev1.ObjectReference{{}}, live.Secrets, "it is of others; the API server stores names of secrets only")
				require.NotContains(t, live.Labels, "dropped")
				env.Settled(t, want(automounts, ""))
			}
			change, err := env.Diff(t, want(true, ""))
			require.NoError(t, err)
			require.Equal(t, []preview.Difference{{Path: "automountServiceAccountToken", Have: "false", Want: "true"}}, change.Differences)

			ownedtest.ByHand(t, env, live, func(account *corev1.ServiceAccount) { account.Secrets = nil })
			env.MustApply(t, want(true, ""))
			env.Settled(t, want(true, ""))
			require.NoError(t, env.Other.Delete(t.Context(), live))
		})
	}
}
