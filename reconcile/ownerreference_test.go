package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func ownedBy(kind, name string, uid types.UID, controller *bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: controller}
}

func TestSetOwner(t *testing.T) {
	ours := ownedBy("Deployment", "web", "d", new(false))
	tests := map[string]struct {
		reason     string
		have, want []metav1.OwnerReference
		changed    bool
	}{
		"first":      {"there is none", nil, []metav1.OwnerReference{ours}, true},
		"already so": {"no request", []metav1.OwnerReference{ours}, []metav1.OwnerReference{ours}, false},
		"by hand":    {"without the field it does not control either", []metav1.OwnerReference{ownedBy("Deployment", "web", "d", nil)}, []metav1.OwnerReference{ownedBy("Deployment", "web", "d", nil)}, false},
		"another":    {"the owner is another one now", []metav1.OwnerReference{ownedBy("Deployment", "old", "o", nil)}, []metav1.OwnerReference{ours}, true},
		"of others": {
			"another kind, and who controls it, are none of our business",
			[]metav1.OwnerReference{ownedBy("StatefulSet", "s", "s", nil), ownedBy("Deployment", "c", "c", new(true))},
			[]metav1.OwnerReference{ownedBy("StatefulSet", "s", "s", nil), ownedBy("Deployment", "c", "c", new(true)), ours}, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			owner := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "d"}}
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", OwnerReferences: tc.have}}
			c := fake.NewClientBuilder().WithObjects(obj).Build()
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			stale := obj.DeepCopy()
			changed, err := PatchOwnerReference(t.Context(), c, obj, owner)
			require.NoError(t, err)
			require.Equal(t, tc.changed, changed, tc.reason)
			live := &corev1.ConfigMap{}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), live))
			require.Equal(t, tc.want, live.OwnerReferences, tc.reason)
			require.Equal(t, live.OwnerReferences, obj.OwnerReferences)
			if changed {
				_, err := PatchOwnerReference(t.Context(), c, stale, owner)
				require.True(t, apierrors.IsConflict(err), "a list that was read before somebody wrote is not sent: %v", err)
			}
		})
	}
	former := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{ownedBy("Deployment", "web", "d", nil)}}}
	changed, err := PatchOwnerReference(t.Context(), fake.NewFakeClient(), former, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "e"}})
	require.ErrorIs(t, err, ErrOwnerRecreated)
	require.False(t, changed)

	leaving := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "d", DeletionTimestamp: new(metav1.Now())}}
	changed, err = PatchOwnerReference(t.Context(), fake.NewFakeClient(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, leaving)
	require.NoError(t, err, "it may leave what it owned: nothing is sent, which would be NotFound here")
	require.False(t, changed)

	_, err = PatchOwnerReference(t.Context(), fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), &corev1.ConfigMap{}, &corev1.ConfigMap{})
	require.Error(t, err, "a kind that is not known")
}

// The pass goes on from what it has written itself.
func TestOwnerAndLabelOfThePassesOwnObject(t *testing.T) {
	owner := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "d"}}
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
		if _, err := PatchOwnerReference(ctx, c, b, owner); err != nil {
			return err
		}
		_, err := PatchLabels(ctx, c, b, map[string]string{"example.com/team": "blue"}, "example.com/old")
		b.Status.CurrentHealthy = 7
		return err
	})))
	require.Zero(t, h.pass(t).RequeueAfter)
	b := &budget{}
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, b))
	require.EqualValues(t, 7, b.Status.CurrentHealthy)
	require.Len(t, b.OwnerReferences, 1)
	require.Equal(t, map[string]string{"example.com/team": "blue"}, b.Labels)
	require.Zero(t, h.pass(t).RequeueAfter)
	require.Equal(t, 1, h.writes, "the status, once")
}
