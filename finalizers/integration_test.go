package finalizers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/finalizers"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

func TestRealLifeOfAnObject(t *testing.T) {
	require.NoError(t, controlPlane(t).InstallCRDs(t.Context(), "../reconcile/reconciletest/controlplane/testdata/widgets.yaml"))
	widget := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	}
	cases := map[string]struct {
		reason string
		obj    client.Object
		read   client.Object
		patch  string
	}{
		"BuiltIn": {"A typed object.", &corev1.ConfigMap{}, &corev1.ConfigMap{}, "PATCH configmaps"},
		"Custom":  {"A custom resource.", widget(), widget(), "PATCH widgets"},
		"Metadata": {
			"An object of which only the metadata is read.", &corev1.ConfigMap{},
			&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}, "PATCH configmaps",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.create(t, tc.obj, theirs)
			obj := tc.read
			obj.SetNamespace(s.namespace)
			obj.SetName("ann")
			s.read(t, obj)
			s.count.Sent()

			for _, want := range []bool{true, false} {
				added, err := finalizers.Ensure(t.Context(), s, obj, account)
				require.NoError(t, err, tc.reason)
				require.Equal(t, want, added)
			}
			require.Equal(t, []string{tc.patch}, s.count.Sent(), "one request, and none if the finalizer is already there")
			version := obj.GetResourceVersion()
			require.Equal(t, []string{theirs, account}, s.read(t, obj))
			require.Equal(t, version, obj.GetResourceVersion(), "the object in memory equals the stored one")

			require.NoError(t, s.Delete(t.Context(), obj))
			s.read(t, obj)
			deleted, err := finalizers.Finalize(t.Context(), s, obj, finalizers.Finalizer{Name: account, Cleanup: succeed})
			require.NoError(t, err)
			require.True(t, deleted)
			require.Equal(t, []string{theirs}, obj.GetFinalizers())
			version = obj.GetResourceVersion()
			require.Equal(t, []string{theirs}, s.read(t, obj))
			require.Equal(t, version, obj.GetResourceVersion())

			stale := obj.DeepCopyObject().(client.Object)
			for _, o := range []client.Object{obj, stale} {
				deleted, err = finalizers.Finalize(t.Context(), s, o, finalizers.Finalizer{Name: theirs, Cleanup: succeed})
				require.NoError(t, err, "also for a stale copy, after the object is gone")
				require.True(t, deleted)
				require.Empty(t, o.GetFinalizers())
			}
			require.True(t, apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)))
		})
	}
}

// TestRealRefusals shows the responses of the API server on which Ensure and Remove rely.
func TestRealRefusals(t *testing.T) {
	t.Run("NewFinalizerDuringDeletion", func(t *testing.T) {
		s := newServer(t)
		obj := &corev1.ConfigMap{}
		s.create(t, obj, theirs)
		require.NoError(t, s.Delete(t.Context(), obj.DeepCopy()))
		_, err := finalizers.Ensure(t.Context(), s, obj, account)
		require.True(t, apierrors.IsConflict(err), "a copy from before the deletion: %v", err)

		s.read(t, obj)
		_, err = finalizers.Ensure(t.Context(), s, obj, account)
		require.ErrorIs(t, err, finalizers.ErrBeingDeleted)
		withoutVersion := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"finalizers":[%q,%q]}}`, theirs, account))
		err = s.Patch(t.Context(), obj.DeepCopy(), withoutVersion)
		require.True(t, apierrors.IsInvalid(err), "the error of the API server: %v", err)
		require.ErrorContains(t, err, "no new finalizers can be added if the object is being deleted")
	})
	t.Run("Namesake", func(t *testing.T) {
		s := newServer(t)
		former := &corev1.ConfigMap{}
		s.create(t, former)
		require.NoError(t, s.Delete(t.Context(), former.DeepCopy()))
		latter := &corev1.ConfigMap{}
		s.create(t, latter, account)

		_, err := finalizers.Ensure(t.Context(), s, former, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		former.Finalizers = []string{account}
		_, err = finalizers.Remove(t.Context(), s, former, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, []string{account}, s.read(t, latter))
	})
	t.Run("ShorterList", func(t *testing.T) {
		s := newServer(t)
		obj := &corev1.ConfigMap{}
		s.create(t, obj, theirs, account)
		stale := obj.DeepCopy()
		_, err := finalizers.Remove(t.Context(), s, obj, theirs)
		require.NoError(t, err)
		entry := client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/metadata/finalizers/1"},`+
			`{"op":"replace","path":"/metadata/resourceVersion","value":"`+stale.ResourceVersion+`"}]`))
		err = s.Patch(t.Context(), stale.DeepCopy(), entry)
		require.True(t, apierrors.IsInvalid(err), "why Remove does not send a JSON patch: %v", err)
		_, err = finalizers.Remove(t.Context(), s, stale, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
	})
}

// The client needs only the permission patch for the kind. It needs neither update nor the subresource finalizers.
func TestRealPermissions(t *testing.T) {
	s := newServer(t)
	obj := &corev1.ConfigMap{}
	s.create(t, obj)
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}}},
	}
	require.NoError(t, s.Create(t.Context(), role))
	user := "system:serviceaccount:" + s.namespace + ":operator"
	require.NoError(t, s.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.namespace, Name: "operator"}},
	}))
	c, err := client.New(controlPlane(t).ConfigFor(user), client.Options{})
	require.NoError(t, err)

	require.Eventually(t, func() bool { // the authorizer reads roles from its own cache
		_, err := finalizers.Ensure(t.Context(), c, obj, account)
		return err == nil
	}, controlplane.Patience, 10*time.Millisecond)
	_, err = finalizers.Remove(t.Context(), c, obj, account)
	require.NoError(t, err)
}

// Several controllers add and remove their own finalizers on one object at the same time. No finalizer may be lost or come
// back.
func TestRealRace(t *testing.T) {
	s := newServer(t)
	const rounds = 40
	names := []string{account, database, theirs}
	for round := range rounds {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprint("round-", round)}}
		require.NoError(t, s.Create(t.Context(), obj))
		conflicts := race(t, s, obj, names, func(ctx context.Context, mine *corev1.ConfigMap, name string) error {
			_, err := finalizers.Ensure(ctx, s, mine, name)
			return err
		})
		require.ElementsMatch(t, names, s.read(t, obj), "round %d, %d conflicts", round, conflicts)

		require.NoError(t, s.Delete(t.Context(), obj))
		race(t, s, obj, names, func(ctx context.Context, mine *corev1.ConfigMap, name string) error {
			deleted, err := finalizers.Finalize(ctx, s, mine, finalizers.Finalizer{Name: name, Cleanup: func(ctx context.Context) error {
				held := &corev1.ConfigMap{}
				if err := s.Get(ctx, client.ObjectKeyFromObject(obj), held); err != nil {
					return fmt.Errorf("the object was deleted before the cleanup of %s: %w", name, err)
				}
				return nil
			}})
			if err == nil && !deleted {
				err = errors.New("it is said not to be deleted")
			}
			return err
		})
		err := s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		require.True(t, apierrors.IsNotFound(err), "round %d: %v", round, err)
	}
}

// race runs act for all names at once, each on a copy that was read before. After a conflict, it runs act again.
func race(t *testing.T, s *server, obj *corev1.ConfigMap, names []string, act func(context.Context, *corev1.ConfigMap, string) error) (conflicts int) {
	t.Helper()
	s.read(t, obj)
	ctx, cancel := context.WithTimeout(t.Context(), controlplane.Patience)
	defer cancel()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs = make([]error, len(names))
	)
	for i, name := range names {
		wg.Go(func() {
			mine := obj.DeepCopy()
			for {
				err := act(ctx, mine, name)
				if !apierrors.IsConflict(err) {
					errs[i] = err
					return
				}
				mu.Lock()
				conflicts++
				mu.Unlock()
				if errs[i] = s.Get(ctx, client.ObjectKeyFromObject(obj), mine); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, names[i])
	}
	require.NotZero(t, conflicts, "all copies have the same resource version, so all but one get a conflict at first")
	return conflicts
}

// The event is recorded although the object is gone and the error is long.
func TestRealGiveUpEvent(t *testing.T) {
	s := newServer(t)
	mgr, err := ctrl.NewManager(controlPlane(t).Config(), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(controlplane.Patience),
	})
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
	deleted, err := finalizers.Finalize(t.Context(), s, obj, finalizers.Finalizer{
		Name: account, Cleanup: func(context.Context) error { return errors.New(strings.Repeat("the database does not answer; ", 100)) },
		GiveUpAfter: time.Nanosecond, Recorder: mgr.GetEventRecorder("test"), Now: func() time.Time { return obj.DeletionTimestamp.Add(time.Second) },
	})
	require.NoError(t, err)
	require.True(t, deleted)
	require.True(t, apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(obj), &corev1.ConfigMap{})))

	var list eventsv1.EventList
	require.Eventually(t, func() bool {
		return s.List(t.Context(), &list, client.InNamespace(s.namespace)) == nil && len(list.Items) > 0
	}, controlplane.Patience, 10*time.Millisecond)
	got := list.Items[0]
	require.Equal(t, "CleanupGivenUp", got.Reason)
	require.Equal(t, "Warning", got.Type)
	require.Equal(t, obj.UID, got.Regarding.UID)
	require.Contains(t, got.Note, "gave up example.com/account after 1ns, what it had to remove may still be there: the database does not answer;")
}

// TestRealEvents shows how the API server treats events. The documentation of Finalizer relies on it.
func TestRealEvents(t *testing.T) {
	s := newServer(t)
	long := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "long"}, EventTime: metav1.NowMicro(),
		ReportingController: "example.com/test", ReportingInstance: "test", Action: "Finalize", Reason: "CleanupGivenUp", Type: "Warning",
		Regarding: corev1.ObjectReference{Kind: "ConfigMap", Namespace: s.namespace, Name: "ann"},
		Note:      strings.Repeat("x", 1025),
	}
	require.ErrorContains(t, s.Create(t.Context(), long.DeepCopy()), "can have at most 1024 characters", "why the note is truncated")
	long.Note = long.Note[:1024]
	require.NoError(t, s.Create(t.Context(), long.DeepCopy()))

	require.NoError(t, s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
	long.Name = "late"
	err := s.Create(t.Context(), long)
	require.True(t, apierrors.IsForbidden(err), "a namespace that is being deleted accepts no event: %v", err)
}
