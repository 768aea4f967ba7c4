package reconcile

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestPatchAnnotations(t *testing.T) {
	tests := map[string]struct {
		reason string
		have   map[string]string
		set    map[string]string
		remove []string
		want   map[string]string
		sent   string // the expected request; empty for none
	}{
		"Add": {
			reason: "the patch has only our keys, and the UID, so that it never changes another object of the same name",
			have:   map[string]string{"theirs": "x"}, set: map[string]string{"ours": "1"},
			want: map[string]string{"theirs": "x", "ours": "1"},
			sent: `{"metadata":{"annotations":{"ours":"1"},"uid":"d"}}`,
		},
		"FirstOne":        {reason: "the object had no annotations", set: map[string]string{"ours": ""}, want: map[string]string{"ours": ""}, sent: `{"metadata":{"annotations":{"ours":""},"uid":"d"}}`},
		"AlreadySo":       {reason: "the key has the value already", have: map[string]string{"ours": "1"}, set: map[string]string{"ours": "1"}, want: map[string]string{"ours": "1"}},
		"AlreadyRemoved":  {reason: "the key is not there", have: map[string]string{"a": "1"}, remove: []string{"ours"}, want: map[string]string{"a": "1"}},
		"Nothing":         {reason: "nothing is asked for", have: map[string]string{"a": "1"}, want: map[string]string{"a": "1"}},
		"ChangeAndRemove": {reason: "one request changes and removes", have: map[string]string{"a": "1", "b": "2", "c": "3"}, set: map[string]string{"a": "2", "c": "3"}, remove: []string{"b"}, want: map[string]string{"a": "2", "c": "3"}, sent: `{"metadata":{"annotations":{"a":"2","b":null},"uid":"d"}}`},
		"RemoveTheLast":   {reason: "no annotation is left", have: map[string]string{"a": "1"}, remove: []string{"a"}, sent: `{"metadata":{"annotations":{"a":null},"uid":"d"}}`},
		"SetWins":         {reason: "a key in both is set", have: map[string]string{"a": "1"}, set: map[string]string{"a": "2"}, remove: []string{"a"}, want: map[string]string{"a": "2"}, sent: `{"metadata":{"annotations":{"a":"2"},"uid":"d"}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sent := ""
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "d", Annotations: tc.have}}
			c := fake.NewClientBuilder().WithObjects(d).WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				data, err := p.Data(obj)
				require.NoError(t, err)
				sent = string(data)
				return c.Patch(ctx, obj, p, opts...)
			}}).Build()
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(d), d))
			d.Spec.Paused = true // a change that exists only in memory: it must not be sent, and must not be lost
			version := d.ResourceVersion
			changed, err := PatchAnnotations(t.Context(), c, d, tc.set, tc.remove...)
			require.NoError(t, err)
			require.Equal(t, tc.sent, sent, tc.reason)
			require.Equal(t, tc.sent != "", changed, tc.reason)
			require.Equal(t, changed, version != d.ResourceVersion)
			require.True(t, d.Spec.Paused)
			for _, got := range []map[string]string{d.Annotations, stored(t, c, d).Annotations} {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
				}
			}
			require.False(t, stored(t, c, d).Spec.Paused)
		})
	}
}

func stored(t *testing.T, c client.Client, of *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(of), d))
	return d
}

func TestPatchAnnotationsOfThePassObject(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
		b.Status.CurrentHealthy = 7
		changed, err := PatchAnnotations(ctx, c, b, map[string]string{"example.com/last": "noon"})
		require.Equal(t, b.Status.ObservedGeneration == 0, changed)
		require.EqualValues(t, 7, b.Status.CurrentHealthy, "what was set in memory stays")
		if err != nil {
			return err
		}
		b.Status.DesiredHealthy = 8
		return Checkpoint(ctx) // the checkpoint must carry the new resource version
	})))
	require.Zero(t, h.pass(t).RequeueAfter, "the write of the pass itself is not a conflict")
	s := h.status(t)
	require.EqualValues(t, 7, s.CurrentHealthy)
	require.EqualValues(t, 8, s.DesiredHealthy)
	require.Equal(t, "Succeeded", conditionsOf(s)[0].Reason)
	require.Equal(t, 2, h.writes, "the checkpoint and the status")
	require.Zero(t, h.pass(t).RequeueAfter)
	require.Equal(t, 2, h.writes)
}

// Another writer changes the object while the pass runs. PatchAnnotations must return a conflict: otherwise the pass
// would continue with the answer as if it had read that change.
func TestPatchAnnotationsConflict(t *testing.T) {
	passes := 0
	var h *harness
	h = newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
		if passes++; passes == 1 {
			theirs := &budget{}
			require.NoError(t, h.client.Get(ctx, request.NamespacedName, theirs))
			theirs.Status.Conditions = []metav1.Condition{{Type: "Theirs", Status: "True", Reason: "Theirs", LastTransitionTime: metav1.Now()}}
			require.NoError(t, h.client.Status().Update(ctx, theirs))
		}
		_, err := PatchAnnotations(ctx, c, b, map[string]string{"example.com/last": "noon"})
		if passes == 1 {
			require.True(t, apierrors.IsConflict(err), "%v", err)
		}
		return err
	})))
	require.NotZero(t, h.pass(t).RequeueAfter)
	h.pass(t)
	got := conditionsOf(h.status(t))
	require.Len(t, got, 2, "the condition of the other writer is not overwritten")
	require.Equal(t, "Theirs", got[0].Type)
}

func TestPatchAnnotationsErrors(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	_, err := PatchAnnotations(t.Context(), fake.NewFakeClient(), d, map[string]string{"a": "b"})
	require.True(t, apierrors.IsNotFound(err))
	require.ErrorContains(t, err, "annotate Deployment ns/a")

	_, err = PatchAnnotations(t.Context(), fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), d, map[string]string{"a": "b"})
	require.ErrorContains(t, err, "add its types to the scheme")
}

// If a step changes the metadata in memory, that change is dropped, also after a write of the metadata.
func TestPatchAnnotationsKeepsMemoryApart(t *testing.T) {
	var stale *budget
	var seen []string
	want := "1"
	h := newHarness(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if b, ok := obj.(*budget); ok && stale != nil {
			stale.DeepCopyInto(b)
			return nil
		}
		return c.Get(ctx, key, obj, opts...)
	}}, Named("one", Func(func(ctx context.Context, c client.Client, b *budget) error {
		seen = append(seen, b.Annotations["scratch"])
		_, err := PatchAnnotations(ctx, c, b, map[string]string{"a": want})
		b.Annotations["scratch"] = "x"
		return err
	})))
	h.pass(t)
	want, stale = "2", h.stored(t) // from now on the cache has an old object
	h.pass(t)
	h.pass(t)
	require.Equal(t, []string{"", "", ""}, seen)
}

func ownedBy(kind, name string, uid types.UID, controller *bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: controller}
}

func TestPatchOwnerReference(t *testing.T) {
	ours := ownedBy("Deployment", "web", "d", new(false))
	tests := map[string]struct {
		reason     string
		have, want []metav1.OwnerReference
		changed    bool
	}{
		"First":     {"the object has no owner", nil, []metav1.OwnerReference{ours}, true},
		"AlreadySo": {"the owner is one already", []metav1.OwnerReference{ours}, []metav1.OwnerReference{ours}, false},
		"ByHand":    {"an owner without the field controller does not control the object either", []metav1.OwnerReference{ownedBy("Deployment", "web", "d", nil)}, []metav1.OwnerReference{ownedBy("Deployment", "web", "d", nil)}, false},
		"Another":   {"a former owner of the same kind is replaced", []metav1.OwnerReference{ownedBy("Deployment", "old", "o", nil)}, []metav1.OwnerReference{ours}, true},
		"OfOthers": {
			"owners of another kind and the controller of the object stay",
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
	require.NoError(t, err, "nothing is sent for an owner that is being deleted; a request would return NotFound here")
	require.False(t, changed)

	changed, err = PatchOwnerReference(t.Context(), fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), &corev1.ConfigMap{}, &corev1.ConfigMap{})
	require.Error(t, err, "the scheme does not have the type of the owner")
	require.False(t, changed)
}

// The pass continues with the answers to its own writes.
func TestPatchOwnerReferenceAndLabelsOfThePassObject(t *testing.T) {
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
	require.Equal(t, 1, h.writes, "the status is written once")
}
