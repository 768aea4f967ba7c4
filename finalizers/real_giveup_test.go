package finalizers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/finalizers"
)

// The event arrives although the object is gone, and however long the error is.
func TestRealGiveUpTellsByAnEvent(t *testing.T) {
	s := newServer(t)
	mgr, err := ctrl.NewManager(controlPlane(t).Config(), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})

	obj := &corev1.ConfigMap{}
	s.create(t, obj, account)
	require.NoError(t, s.Delete(t.Context(), obj.DeepCopy()))
	s.read(t, obj)
	outcome, err := finalizers.Finalize(t.Context(), s, obj, account,
		func(context.Context) error { return errors.New(strings.Repeat("the database does not answer; ", 100)) },
		finalizers.GiveUpAfter(0, mgr.GetEventRecorder("test")),
		finalizers.WithClock(func() time.Time { return obj.DeletionTimestamp.Time }))
	require.NoError(t, err)
	require.Equal(t, finalizers.GaveUp, outcome)
	require.True(t, apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(obj), &corev1.ConfigMap{})))

	var list eventsv1.EventList
	require.Eventually(t, func() bool {
		return s.List(t.Context(), &list, client.InNamespace(s.namespace)) == nil && len(list.Items) > 0
	}, 20*time.Second, 10*time.Millisecond)
	got := list.Items[0]
	require.Equal(t, "CleanupGivenUp", got.Reason)
	require.Equal(t, "Warning", got.Type)
	require.Equal(t, obj.UID, got.Regarding.UID)
	require.Contains(t, got.Note, "gave up example.com/account after 0s, what it had to remove may still be there: the database does not answer;")
}

// What the API server makes of events, on which GiveUpAfter's documentation relies.
func TestRealEvents(t *testing.T) {
	s := newServer(t)
	long := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "long"}, EventTime: metav1.NowMicro(),
		ReportingController: "example.com/test", ReportingInstance: "test", Action: "Finalize", Reason: "CleanupGivenUp", Type: "Warning",
		Regarding: corev1.ObjectReference{Kind: "ConfigMap", Namespace: s.namespace, Name: "ann"},
		Note:      strings.Repeat("x", 1025),
	}
	require.ErrorContains(t, s.Create(t.Context(), long.DeepCopy()), "can have at most 1024 characters", "why notes are cut")
	long.Note = long.Note[:1024]
	require.NoError(t, s.Create(t.Context(), long.DeepCopy()))

	require.NoError(t, s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
	long.Name = "late"
	err := s.Create(t.Context(), long)
	require.True(t, apierrors.IsForbidden(err), "a namespace that is being deleted takes no event: %v", err)
}
