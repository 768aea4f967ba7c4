package ownedresources

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settings and extra are children of a ConfigMap, in tests of sets.
func settings(owner *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-settings"}, Data: map[string]string{"a": "b"}}
}

func (w *world) exists(t *testing.T, obj client.Object) bool {
	t.Helper()
	if obj.GetNamespace() == "" {
		obj.SetNamespace(w.namespace)
	}
	err := w.other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

func TestPrune(t *testing.T) {
	w := newWorld(t)
	wantExtra, broken := true, error(nil)
	extra := func(owner *corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: "extra"}}
	}
	newSet := func() *Set[*corev1.ConfigMap] {
		s := Ensure(
			TryBuild(func(owner *corev1.ConfigMap) (*corev1.ConfigMap, error) { return settings(owner), broken }),
			Build(func(owner *corev1.ConfigMap) *corev1.ConfigMap {
				if !wantExtra {
					return nil
				}
				return extra(owner)
			}),
		)
		s.SetName("one")
		return s
	}
	// Another set of the same owner, with a child of the same kind.
	other := Ensure(Build(func(*corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-the-other-set"}}
	}))
	other.SetName("two")
	byHand := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "by-hand",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
	}}
	require.NoError(t, w.other.Create(t.Context(), byHand))

	s := newSet()
	require.NoError(t, s.Reconcile(t.Context(), w.client, w.owner))
	require.NoError(t, other.Reconcile(t.Context(), w.client, w.owner))
	require.True(t, w.exists(t, extra(w.owner)))

	wantExtra, broken = false, errors.New("cannot be built")
	require.ErrorIs(t, s.Reconcile(t.Context(), w.client, w.owner), broken)
	require.True(t, w.exists(t, extra(w.owner)), "nothing is pruned when building failed")

	broken = nil
	s = newSet() // a restart: nothing is remembered
	w.count.Sent()
	require.NoError(t, s.Reconcile(t.Context(), w.client, w.owner))
	require.False(t, w.exists(t, extra(w.owner)), "what is not wanted goes, also after a restart")
	require.Equal(t, []string{"GET configmaps", "DELETE configmaps"}, w.count.Sent())
	for _, kept := range []string{"web-settings", "of-the-other-set", "by-hand"} {
		require.True(t, w.exists(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kept}}), kept)
	}

	require.NoError(t, s.Reconcile(t.Context(), w.client, w.owner))
	require.Equal(t, []string{"GET configmaps"}, w.count.Sent(), "looked for once")
}

func TestReplicasSetThenUnsetStay(t *testing.T) {
	for _, start := range []string{"after the POST", "after an apply"} {
		t.Run(start, func(t *testing.T) {
			w := newWorld(t)
			want := w.deployment()
			want.Spec.Replicas = new(int32(4))
			w.expect(t, want, Created, "POST deployments")
			if start == "after an apply" {
				want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
				w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
			}
			want.Spec.Replicas = nil
			_, err := w.apply(t, want)
			require.NoError(t, err)
			var live appsv1.Deployment
			w.live(t, &live)
			require.EqualValues(t, 4, *live.Spec.Replicas, "they are an autoscaler's now, and do not fall to 1")
			w.expect(t, want, Unchanged, none...)

			byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
			w.expect(t, want, Unchanged, none...)
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
			w.expect(t, want, Applied, "PATCH deployments")
			w.live(t, &live)
			require.EqualValues(t, 7, *live.Spec.Replicas)

			want.Spec.Replicas = new(int32(2))
			w.expect(t, want, Applied, "PATCH deployments")
			w.live(t, &live)
			require.EqualValues(t, 2, *live.Spec.Replicas, "set again, they are ours again")
		})
	}
}

func TestCreateOnlyFields(t *testing.T) {
	w := newWorld(t)
	initial := CreateOnly(func(d *appsv1.Deployment) {
		d.Spec.Replicas = nil
		delete(d.Labels, "created-with")
	})
	want := func(image string) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Replicas = new(int32(3))
		d.Labels["created-with"] = "this"
		d.Spec.Template.Spec.Containers[0].Image = image
		return d
	}
	result, err := w.apply(t, want("nginx:1.27"), initial)
	require.NoError(t, err)
	require.EqualValues(t, 3, *result.Object.(*appsv1.Deployment).Spec.Replicas)
	var live appsv1.Deployment
	byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	for _, image := range []string{"nginx:1.27", "nginx:1.28", "nginx:1.29"} {
		_, err = w.apply(t, want(image), initial)
		require.NoError(t, err)
		w.live(t, &live)
		require.EqualValues(t, 5, *live.Spec.Replicas, "it is not repaired, and not reset by an apply")
		require.Equal(t, "this", live.Labels["created-with"], "it does not go either")
		require.Equal(t, image, live.Spec.Template.Spec.Containers[0].Image)
	}
}

func TestAdopt(t *testing.T) {
	w := newWorld(t)
	theirs := w.deployment()
	theirs.Spec.Replicas = new(int32(9))
	theirs.Labels["theirs"] = "stays"
	require.NoError(t, w.other.Create(t.Context(), theirs))
	result, err := w.apply(t, w.deployment(), Adopt())
	require.NoError(t, err)
	require.Equal(t, Applied, result.Operation)
	var live appsv1.Deployment
	w.live(t, &live)
	require.True(t, metav1.IsControlledBy(&live, w.owner))
	require.EqualValues(t, 2, *live.Spec.Replicas)
	require.Equal(t, "stays", live.Labels["theirs"])
	w.expect(t, w.deployment(), Unchanged, none...)

	w.owner = w.newOwner(t, "another")
	again := w.deployment()
	again.Name = "web"
	_, err = w.apply(t, again, Adopt())
	var owned *OwnershipError
	require.ErrorAs(t, err, &owned, "what somebody controls is never adopted")
}

func TestImmutableField(t *testing.T) {
	changed := func(w *world) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		return d
	}
	t.Run("is a clear error", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		_, err := w.apply(t, changed(w))
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "field is immutable")
	})
	t.Run("recreates on request, once", func(t *testing.T) {
		w := newWorld(t)
		before := w.expect(t, w.deployment(), Created, "POST deployments")
		_, err := w.apply(t, changed(w), Recreate())
		var wait *WaitingError
		require.ErrorAs(t, err, &wait)
		require.False(t, w.exists(t, w.deployment()))
		result, err := w.apply(t, changed(w), Recreate())
		require.NoError(t, err)
		require.Equal(t, Created, result.Operation)
		require.NotEqual(t, before.GetUID(), result.Object.GetUID())

		// Somebody puts the old one back, again and again.
		require.NoError(t, w.other.Delete(t.Context(), result.Object.DeepCopyObject().(client.Object)))
		old := w.deployment()
		old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
		require.NoError(t, w.other.Create(t.Context(), old))
		w.applier.writes.Forget(old, client.ObjectKeyFromObject(old))
		_, err = w.apply(t, changed(w), Recreate())
		require.ErrorContains(t, err, "recreated once for this change already")
		require.True(t, w.exists(t, w.deployment()))
	})
	t.Run("never deletes for an invalid object", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		bad := w.deployment()
		bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
		_, err := w.apply(t, bad, Recreate())
		require.ErrorContains(t, err, "is not recreated, since that would be refused too")
		require.True(t, w.exists(t, w.deployment()))
	})
}

func TestStringData(t *testing.T) {
	w := newWorld(t)
	want := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			StringData: map[string]string{"a": "text", "b": "wins"},
			Data:       map[string][]byte{"b": []byte("loses"), "c": {0xff}},
		}
	}
	w.expect(t, want(), Created, "POST secrets")
	w.expect(t, want(), Unchanged, none...)
	var live corev1.Secret
	byHand(t, w, &live, func(s *corev1.Secret) { s.Data["a"] = []byte("drift") })
	_, err := w.apply(t, want())
	require.NoError(t, err)
	w.live(t, &live)
	require.Equal(t, map[string][]byte{"a": []byte("text"), "b": []byte("wins"), "c": {0xff}}, live.Data)
}

// The API server of an older version does not know a field of ours.
func TestUnknownFieldOfAnApplyIsInvalid(t *testing.T) {
	err := unknownField(apierrors.NewInternalError(errors.New(`failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): .spec.new: field not declared in schema`)))
	require.True(t, apierrors.IsInvalid(err))
	require.ErrorContains(t, err, ".spec.new: field not declared in schema")
	other := apierrors.NewInternalError(errors.New("etcd is full"))
	require.Same(t, other, unknownField(other), "other faults of the server are not ours")
}

func TestSetWaitsForReadiness(t *testing.T) {
	w := newWorld(t)
	s := Ensure(Build(func(*corev1.ConfigMap) *appsv1.Deployment { return w.deployment() }))
	err := s.Reconcile(t.Context(), w.client, w.owner)
	var wait *WaitingError
	require.ErrorAs(t, err, &wait)
	require.ErrorContains(t, err, "web: Replicas: 0/2", "created is not ready")
	var live appsv1.Deployment
	w.live(t, &live)
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: "Available", Status: "True"}, {Type: "Progressing", Status: "True", Reason: "NewReplicaSetAvailable"},
		}}
	require.NoError(t, w.other.Status().Update(context.Background(), &live))
	require.NoError(t, s.Reconcile(t.Context(), w.client, w.owner))
}

func TestNothingIsPrunedBeforeItsReplacementIsThere(t *testing.T) {
	w := newWorld(t)
	name := "one"
	s := Ensure(Build(func(*corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}))
	require.NoError(t, s.Reconcile(t.Context(), w.client, w.owner))
	name = "Not A Name"
	require.True(t, apierrors.IsInvalid(s.Reconcile(t.Context(), w.client, w.owner)))
	require.True(t, w.exists(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
}

// What the cache shows as ours may be somebody else's by now.
func TestRecreateLooksTwice(t *testing.T) {
	w := newWorld(t)
	ours := w.expect(t, w.deployment(), Created, "POST deployments").(*appsv1.Deployment).DeepCopy()
	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.newOwner(t, "other"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	})
	o, err := newOwner(w.owner, w.client)
	require.NoError(t, err)
	want, err := w.applier.want(&o, ours, &childOptions{recreate: true})
	require.NoError(t, err)
	var owned *OwnershipError
	require.ErrorAs(t, w.applier.recreate(t.Context(), want, errors.New("immutable")), &owned)
	require.True(t, w.exists(t, w.deployment()))
}

func TestCreateOnlyStringData(t *testing.T) {
	w := newWorld(t)
	password := ""
	build := func() *corev1.Secret {
		password += "x"
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"password": password}}
	}
	once := CreateOnly(func(s *corev1.Secret) { s.StringData = nil })
	for range 3 {
		_, err := w.apply(t, build(), once)
		require.NoError(t, err)
	}
	var live corev1.Secret
	w.live(t, &live)
	require.Equal(t, "x", string(live.Data["password"]))
}

func TestRefusalsQuoteNoObjects(t *testing.T) {
	err := withoutValues(apierrors.NewBadRequest(`spec.template: Invalid value: {"env":[{"value":"canary"}]}: field is immutable`))
	require.Equal(t, "spec.template: Invalid value: {…}: field is immutable", err.Error())
	require.True(t, apierrors.IsBadRequest(err), "it is still the API server's")
}

func TestGuardsDelayGetsThroughASet(t *testing.T) {
	err := joinWaits([]*WaitingError{{reason: "A", message: "a"}, {reason: "B", message: "b", after: 7}, {reason: "C", message: "c", after: 5}})
	var wait *WaitingError
	require.ErrorAs(t, err, &wait)
	_, after := wait.Waiting()
	require.EqualValues(t, 5, after)
}
