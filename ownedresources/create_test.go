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
)

// Without controllers a namespace stays Terminating.
func TestNamespaceBeingDeleted(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.other.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	_, err := w.apply(t, w.service())
	var wait *WaitingError
	require.ErrorAs(t, err, &wait, "nothing is wrong with the object")
	require.ErrorContains(t, err, "its namespace is being deleted")
}

func TestAlreadyExistsThenGoneIsARace(t *testing.T) {
	w := newWorld(t)
	want, err := w.applier.want(ownerOf(t, w), w.service(), &childOptions{})
	require.NoError(t, err)
	want.object.SetNamespace(w.namespace)
	exists := errors.New("already exists")
	_, err = w.applier.unseen(t.Context(), want, exists)
	require.ErrorIs(t, err, exists)
}

// blind is a client whose cache shows nothing. Unstructured reads go past a manager's cache.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, live := obj.(interface{ UnstructuredContent() map[string]any }); live {
		return b.Client.Get(ctx, key, obj, opts...)
	}
	return apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
}

func TestOwnObjectThatTheCacheDoesNotShow(t *testing.T) {
	w := newWorld(t)
	seeing := w.client
	w.client = blind{seeing}
	_, err := w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments"}, w.count.Sent())

	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Empty(t, w.count.Sent(), "it is remembered until the cache shows it")

	w.applier = newApplier()
	_, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, []string{"POST deployments", "GET deployments"}, w.count.Sent(), "after a restart it is found out")

	w.applier = newApplier()
	w.applier.guard.clock = clocktesting.NewFakePassiveClock(time.Now().Add(2 * cacheDelay))
	_, err = w.apply(t, w.deployment())
	var hidden *NotCachedError
	require.ErrorAs(t, err, &hidden, "a cache that is behind for that long will never show it")
	require.Equal(t, "NotInCache", hidden.Reason())
}
