package ownedresources

import (
	"context"
	"errors"
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
)

func TestApplyCreatesOnce(t *testing.T) {
	w := newServerEnv(t)
	for _, want := range []client.Object{w.deployment(), w.service()} {
		live := w.expect(t, want, apply.Created, "POST "+resourceOf(want))
		require.True(t, metav1.IsControlledBy(live, w.owner))
	}
	for range 3 {
		w.expect(t, w.deployment(), apply.Unchanged, none...)
		w.expect(t, w.service(), apply.Unchanged, none...)
	}
	w.applier = apply.New() // a restart
	w.expect(t, w.deployment(), apply.Unchanged, none...)
	w.expect(t, w.service(), apply.Unchanged, none...)
}

func TestApplyTriesAllObjects(t *testing.T) {
	w := newServerEnv(t)
	theirs := w.deployment()
	require.NoError(t, w.other.Create(t.Context(), theirs))
	results, err := Apply(t.Context(), w.client, w.owner, w.deployment(), w.service())
	var owned *owned.OwnershipError
	require.ErrorAs(t, err, &owned)
	require.Nil(t, results[0].Object)
	require.Equal(t, apply.Created, results[1].Operation)
	require.NotEmpty(t, results[1].Object.(*corev1.Service).Spec.ClusterIP)
}

// blind is a client whose cache shows nothing. Unstructured reads go past a manager's cache.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, live := obj.(interface{ UnstructuredContent() map[string]any }); live {
		return b.Client.Get(ctx, key, obj, opts...)
	}
	return apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
}

func TestApplyOfAnObjectThatTheCacheDoesNotShow(t *testing.T) {
	w := newServerEnv(t)
	seeing := w.client
	w.client = blind{seeing}
	_, err := w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments"}, w.sent.Sent())

	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Empty(t, w.sent.Sent(), "it is remembered until the cache shows it")

	w.applier = apply.New()
	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments", "GET deployments"}, w.sent.Sent(), "after a restart it is found past the cache")

	w.applier = apply.New()
	w.applier.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(2 * apply.MaxCacheDelay))
	_, err = w.apply(t, w.deployment())
	var hidden *owned.NotCachedError
	require.ErrorAs(t, err, &hidden, "a cache that is behind for that long will never show it")
	require.Equal(t, "NotInCache", hidden.Reason())
}

func TestApplyOfAnObjectThatExistsAndThenIsGone(t *testing.T) {
	w := newServerEnv(t)
	d, err := w.applier.Desire(ownerOf(t, w), w.service(), &owned.Options{})
	require.NoError(t, err)
	d.Object.SetNamespace(w.namespace)
	exists := errors.New("already exists")
	_, err = w.applier.UpdateUnseen(t.Context(), d, exists)
	require.ErrorIs(t, err, exists, "a lost race: the next pass creates it")
}
