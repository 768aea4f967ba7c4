package ownedresources

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/writeloop"
)

func TestRecreate(t *testing.T) {
	changed := func(w *serverEnv) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		return d
	}
	t.Run("NotAllowed", func(t *testing.T) {
		w := newServerEnv(t)
		w.expect(t, w.deployment(), apply.Created, "POST deployments")
		_, err := w.apply(t, changed(w))
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "field is immutable")
	})
	t.Run("OncePerChange", func(t *testing.T) {
		w := newServerEnv(t)
		before := w.expect(t, w.deployment(), apply.Created, "POST deployments")
		_, err := w.apply(t, changed(w), withRecreate())
		var wait *owned.WaitingError
		require.ErrorAs(t, err, &wait)
		require.False(t, w.exists(t, w.deployment()))
		result, err := w.apply(t, changed(w), withRecreate())
		require.NoError(t, err)
		require.Equal(t, apply.Created, result.Operation)
		require.NotEqual(t, before.GetUID(), result.Object.GetUID())

		// What was created for this change is refused like the object before it.
		d, err := w.applier.Desire(ownerOf(t, w), changed(w), &owned.Options{Recreate: true})
		require.NoError(t, err)
		immutable := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil)
		require.ErrorContains(t, w.applier.Refuse(t.Context(), d, immutable), "recreated once for this change already")
		require.True(t, w.exists(t, w.deployment()))
	})
	t.Run("PutBack", func(t *testing.T) {
		w := newServerEnv(t)
		clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		w.applier.Clock = clock
		w.expect(t, w.deployment(), apply.Created, "POST deployments")
		putBack := func() {
			old := w.deployment()
			if w.exists(t, old) {
				require.NoError(t, w.other.Delete(t.Context(), old))
			}
			old = w.deployment()
			old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.owner, shopKind)}
			require.NoError(t, w.other.Create(t.Context(), old))
			w.applier.Writes.Forget(old, client.ObjectKeyFromObject(old))
		}
		recreate := func(when string) (wait *owned.WaitingError) {
			_, err := w.apply(t, changed(w), withRecreate())
			require.ErrorAs(t, err, &wait, when)
			return wait
		}
		for i := range writeloop.Free + 1 {
			require.Equal(t, apply.ReasonRecreating, reasonOf(recreate("an object with another UID is recreated again")))
			require.False(t, w.exists(t, w.deployment()))
			if i%2 == 0 { // the other writer is sometimes faster than our creation
				_, err := w.apply(t, changed(w), withRecreate())
				require.NoError(t, err)
			}
			putBack()
		}
		wait := recreate("nothing fails, so that the set prunes")
		require.Equal(t, owned.NewWaiting(report.ReasonWriteLoop, writeloop.MinDelay, "Deployment "+w.namespace+
			"/web is replaced by the former one again and again by another writer, so it is recreated less often"), wait)
		require.Equal(t, []string{"GET deployments"}, w.sent.Sent(), "the read of a cache, and no request")
		require.Len(t, shown(t, w.applier.Metrics, "opblocks_write_loop"), 1)
		clock.SetTime(clock.Now().Add(writeloop.MinDelay))
		require.Equal(t, apply.ReasonRecreating, reasonOf(recreate("it is recreated all the same")))
		putBack()
		require.Equal(t, 2*writeloop.MinDelay, delayOf(recreate("the next one comes later")))
		w.applier.Loops.Forget(w.owner.UID)
		require.Empty(t, shown(t, w.applier.Metrics, "opblocks_write_loop"), "the metric goes with the owner")
	})
	t.Run("InvalidObject", func(t *testing.T) {
		w := newServerEnv(t)
		w.expect(t, w.deployment(), apply.Created, "POST deployments")
		bad := w.deployment()
		bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
		_, err := w.apply(t, bad, withRecreate())
		require.ErrorContains(t, err, "is not recreated, since that would be refused too")
		require.True(t, w.exists(t, w.deployment()))
	})
}

// Another writer puts the old child back. The owner's other children are pruned while the recreation is delayed.
func TestPruneWhileARecreationIsDelayed(t *testing.T) {
	w := newServerEnv(t)
	name, selector := "former", "web"
	set := Ensure(
		Build(func(*Shop) *appsv1.Deployment {
			d := w.deployment()
			d.Spec.Selector.MatchLabels = map[string]string{"app": selector}
			d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
			return d
		}).Recreate(),
		Build(func(*Shop) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}),
	)
	reconcile := func() string {
		var wait *owned.WaitingError
		require.ErrorAs(t, set.Reconcile(t.Context(), w.client, w.owner), &wait)
		return reasonOf(wait)
	}
	reconcile()
	old := &appsv1.Deployment{}
	w.live(t, old)
	selector = "other"
	for reason := ""; reason != report.ReasonWriteLoop; {
		if reason = reconcile(); reason == apply.ReasonRecreating {
			back := old.DeepCopy()
			back.UID, back.ResourceVersion = "", ""
			require.NoError(t, w.other.Create(t.Context(), back))
		}
	}
	name = "present"
	require.Equal(t, report.ReasonWriteLoop, reconcile())
	require.False(t, w.exists(t, namedConfigMap("", "former")))
	require.True(t, w.exists(t, namedConfigMap("", "present")))
}

// The cache may show an object as ours although it has got another owner.
func TestRecreateReadsPastTheCache(t *testing.T) {
	w := newServerEnv(t)
	ours := w.expect(t, w.deployment(), apply.Created, "POST deployments").(*appsv1.Deployment).DeepCopy()
	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.newOwnerNamed(t, "other"), shopKind)}
	})
	d, err := w.applier.Desire(ownerOf(t, w), ours, &owned.Options{Recreate: true})
	require.NoError(t, err)
	immutable := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil)
	_, err = w.applier.RecoverFrom(t.Context(), d, immutable)
	var owned *owned.OwnershipError
	require.ErrorAs(t, err, &owned)
	require.True(t, w.exists(t, w.deployment()))
}

func TestRecreateAgainAfterAnotherChange(t *testing.T) {
	w := newServerEnv(t)
	with := func(label string) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Selector.MatchLabels["is"], d.Spec.Template.Labels["is"] = label, label
		return d
	}
	w.expect(t, with("a"), apply.Created, "POST deployments")
	for _, label := range []string{"b", "a", "b"} {
		_, err := w.apply(t, with(label), withRecreate())
		require.ErrorAs(t, err, new(*owned.WaitingError), "to %s", label)
		result, err := w.apply(t, with(label), withRecreate())
		require.NoError(t, err)
		require.Equal(t, apply.Created, result.Operation)
	}
}

// A refusal is known for what the API server was asked to create, and not only for what is applied.
func TestCorrectedFieldThatIsOnlyCreated(t *testing.T) {
	env := newServerEnv(t)
	build := func(version, key string) *corev1.ConfigMap {
		made := NewConfigMap(env.owner, map[string]string{"version": version, key: "only created"})
		made.Immutable = new(true)
		return made
	}
	only := withCreateOnly(func(c *corev1.ConfigMap) {
		maps.DeleteFunc(c.Data, func(key, _ string) bool { return key != "version" })
	})
	_, err := env.apply(t, build("1", "good"), withRecreate(), only)
	require.NoError(t, err)
	_, err = env.apply(t, build("2", "no key"), withRecreate(), only)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = env.apply(t, build("2", "good"), withRecreate(), only)
	requireWaits(t, err, apply.ReasonRecreating)
}

// For server-side apply an item with another key is another item.
func TestApplyRepairsTheKeyOfAnItem(t *testing.T) {
	t.Run("ServicePort", func(t *testing.T) {
		w := newServerEnv(t)
		w.expect(t, w.service(), apply.Created, "POST services")
		var live corev1.Service
		for range 2 {
			byHand(t, w, &live, func(s *corev1.Service) {
				s.Spec.Ports[0].Port = 8080
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "theirs", Port: 9999})
			})
			_, err := w.apply(t, w.service())
			require.NoError(t, err)
			w.live(t, &live)
			require.Len(t, live.Spec.Ports, 2, "an item without a value of ours stays")
			w.expect(t, w.service(), apply.Unchanged, none...)
			byHand(t, w, &live, func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[1:] })
			w.expect(t, w.service(), apply.Unchanged, none...)
		}
		want := w.service()
		want.Spec.Ports = []corev1.ServicePort{{Name: "other", Port: 81}}
		_, err := w.apply(t, want)
		require.NoError(t, err)
		w.live(t, &live)
		require.Len(t, live.Spec.Ports, 1, "the item in its place is ours, and is removed when it is not desired")
		w.expect(t, want, apply.Unchanged, none...)
	})
	t.Run("ContainerPort", func(t *testing.T) {
		w := newServerEnv(t)
		w.expect(t, w.deployment(), apply.Created, "POST deployments")
		var live appsv1.Deployment
		byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 80 })
		_, err := w.apply(t, w.deployment())
		require.NoError(t, err)
		w.live(t, &live)
		require.EqualValues(t, 8080, live.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort)
		require.Len(t, live.Spec.Template.Spec.Containers[0].Ports, 1)
		w.expect(t, w.deployment(), apply.Unchanged, none...)
	})
	t.Run("ContainerName", func(t *testing.T) {
		w := newServerEnv(t)
		w.expect(t, w.deployment(), apply.Created, "POST deployments")
		var live appsv1.Deployment
		byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "renamed" })
		_, err := w.apply(t, w.deployment())
		require.NoError(t, err)
		w.expect(t, w.deployment(), apply.Unchanged, none...)
	})
}
