package apply_test

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
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
	"github.com/opblocks/opblocks/internal/writeloop"
)

func TestRecreate(t *testing.T) {
	changed := func(w *ownedtest.Server) *appsv1.Deployment {
		d := w.Deployment()
		d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		return d
	}
	t.Run("NotAllowed", func(t *testing.T) {
		w := newServer(t)
		w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
		_, err := w.Apply(t, changed(w))
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "field is immutable")
	})
	t.Run("OncePerChange", func(t *testing.T) {
		w := newServer(t)
		before := w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
		_, err := w.Apply(t, changed(w), withRecreate())
		var wait *owned.WaitingError
		require.ErrorAs(t, err, &wait)
		require.False(t, w.Exists(t, w.Deployment()))
		result := w.MustApply(t, changed(w), withRecreate())
		require.Equal(t, apply.Created, result.Operation)
		require.NotEqual(t, before.GetUID(), result.Object.GetUID())

		// The API server refuses this change of the new object too, as it refused the change of the deleted one.
		d, err := w.Applier.Desire(w.OwnerOf(t), changed(w), &owned.Options{Recreate: true})
		require.NoError(t, err)
		immutable := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil)
		require.ErrorContains(t, w.Applier.Refuse(t.Context(), d, immutable), "recreated once for this change already")
		require.True(t, w.Exists(t, w.Deployment()))
	})
	t.Run("PutBack", func(t *testing.T) {
		w := newServer(t)
		clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		w.Applier.Clock = clock
		w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
		putBack := func() {
			old := w.Deployment()
			if w.Exists(t, old) {
				require.NoError(t, w.Other.Delete(t.Context(), old))
			}
			old = w.Deployment()
			old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, testkinds.ShopKind)}
			require.NoError(t, w.Other.Create(t.Context(), old))
			w.Applier.Writes.Forget(old, client.ObjectKeyFromObject(old))
		}
		recreate := func(when string) (wait *owned.WaitingError) {
			_, err := w.Apply(t, changed(w), withRecreate())
			require.ErrorAs(t, err, &wait, when)
			return wait
		}
		for i := range writeloop.Free + 1 {
			require.Equal(t, apply.ReasonRecreating, ownedtest.ReasonOf(recreate("an object with another UID is recreated again")))
			require.False(t, w.Exists(t, w.Deployment()))
			if i%2 == 0 { // in every second round, another writer creates the object before us
				w.MustApply(t, changed(w), withRecreate())
			}
			putBack()
		}
		wait := recreate("nothing fails, so that the set prunes")
		require.Equal(t, owned.NewWaiting(report.ReasonWriteLoop, writeloop.MinDelay, "Deployment "+w.Namespace+
			"/web is replaced by the former one again and again by another writer, so it is recreated less often"), wait)
		require.Equal(t, []string{"GET deployments"}, w.Requests.Sent(), "the read of a cache, and no request")
		require.Len(t, ownedtest.Shown(t, w.Applier.Metrics, "opblocks_write_loop"), 1)
		clock.SetTime(clock.Now().Add(writeloop.MinDelay))
		require.Equal(t, apply.ReasonRecreating, ownedtest.ReasonOf(recreate("it is recreated all the same")))
		putBack()
		require.Equal(t, 2*writeloop.MinDelay, ownedtest.DelayOf(recreate("the next one comes later")))
		w.Applier.Loops.Forget(w.Owner.UID)
		require.Empty(t, ownedtest.Shown(t, w.Applier.Metrics, "opblocks_write_loop"), "the metric goes with the owner")
	})
	t.Run("InvalidObject", func(t *testing.T) {
		w := newServer(t)
		w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
		bad := w.Deployment()
		bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
		_, err := w.Apply(t, bad, withRecreate())
		require.ErrorContains(t, err, "is not recreated, since that would be refused too")
		require.True(t, w.Exists(t, w.Deployment()))
	})
}

// The cache may still show an object as ours after another owner has got it.
func TestRecreateReadsPastTheCache(t *testing.T) {
	w := newInMemory(t)
	ours := w.Expect(t, w.Deployment(), apply.Created, "POST deployments").(*appsv1.Deployment).DeepCopy()
	ownedtest.ByHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.NewOwnerNamed(t, "other"), testkinds.ShopKind)}
	})
	d, err := w.Applier.Desire(w.OwnerOf(t), ours, &owned.Options{Recreate: true})
	require.NoError(t, err)
	immutable := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil)
	_, err = w.Applier.RecoverFrom(t.Context(), d, immutable)
	var owned *owned.OwnershipError
	require.ErrorAs(t, err, &owned)
	require.True(t, w.Exists(t, w.Deployment()))
}

func TestRecreateAgainAfterAnotherChange(t *testing.T) {
	w := newInMemory(t)
	with := func(label string) *appsv1.Deployment {
		d := w.Deployment()
		d.Spec.Selector.MatchLabels["is"], d.Spec.Template.Labels["is"] = label, label
		return d
	}
	w.Expect(t, with("a"), apply.Created, "POST deployments")
	for _, label := range []string{"b", "a", "b"} {
		_, err := w.Apply(t, with(label), withRecreate())
		require.ErrorAs(t, err, new(*owned.WaitingError), "to %s", label)
		require.Equal(t, apply.Created, w.MustApply(t, with(label), withRecreate()).Operation)
	}
}

// The process remembers a refusal together with the fields of CreateOnly that were sent. If one of these fields is corrected, the object is
// sent again.
func TestCorrectedFieldThatIsOnlyCreated(t *testing.T) {
	env := newInMemory(t)
	build := func(version, key string) *corev1.ConfigMap {
		made := &corev1.ConfigMap{ObjectMeta: env.Meta(), Data: map[string]string{"version": version, key: "only created"}, Immutable: new(true)}
		return made
	}
	only := withCreateOnly(func(c *corev1.ConfigMap) {
		maps.DeleteFunc(c.Data, func(key, _ string) bool { return key != "version" })
	})
	env.MustApply(t, build("1", "good"), withRecreate(), only)
	_, err := env.Apply(t, build("2", "no key"), withRecreate(), only)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = env.Apply(t, build("2", "good"), withRecreate(), only)
	ownedtest.RequireWaits(t, err, apply.ReasonRecreating)
}
