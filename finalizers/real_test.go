package finalizers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
)

var controlPlane = controlplanetest.Shared()

// server is a client of a real API server, whose requests are counted, and a namespace there.
type server struct {
	client.Client
	count     requests.Count
	namespace string
}

func newReal(t *testing.T) *server {
	t.Helper()
	cp := controlPlane(t)
	r := &server{namespace: controlplanetest.Namespace(t, cp)}
	var err error
	r.Client, err = client.New(r.count.Wrap(cp.Config()), client.Options{})
	require.NoError(t, err)
	return r
}

func (r *server) create(t *testing.T, obj client.Object, names ...string) {
	t.Helper()
	obj.SetNamespace(r.namespace)
	obj.SetName("ann")
	obj.SetFinalizers(names)
	require.NoError(t, r.Create(t.Context(), obj))
	t.Cleanup(func() { // a finalizer that is left would keep the namespace
		_ = r.Patch(context.Background(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
}

func (r *server) read(t *testing.T, obj client.Object) []string {
	t.Helper()
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj.GetFinalizers()
}

func TestRealLifeOfAnObject(t *testing.T) {
	require.NoError(t, controlPlane(t).InstallCRDs(t.Context(), "../internal/controlplane/testdata/widgets.yaml"))
	widget := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	}
	cases := map[string]struct {
		reason string
		obj    client.Object
		read   client.Object
		patch  string
	}{
		"BuiltIn": {"a typed object", &corev1.ConfigMap{}, &corev1.ConfigMap{}, "PATCH configmaps"},
		"Custom":  {"a custom resource", widget(), widget(), "PATCH widgets"},
		"Metadata": {
			"of which only the metadata is read", &corev1.ConfigMap{},
			&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}, "PATCH configmaps",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReal(t)
			r.create(t, tc.obj, theirs)
			obj := tc.read
			obj.SetNamespace(r.namespace)
			obj.SetName("ann")
			r.read(t, obj)
			r.count.Sent()

			for _, want := range []bool{true, false} {
				added, err := finalizers.Ensure(t.Context(), r, obj, account)
				require.NoError(t, err, tc.reason)
				require.Equal(t, want, added)
			}
			require.Equal(t, []string{tc.patch}, r.count.Sent(), "one request, and none when it is there")
			version := obj.GetResourceVersion()
			require.Equal(t, []string{theirs, account}, r.read(t, obj))
			require.Equal(t, version, obj.GetResourceVersion(), "in memory is what is stored")

			require.NoError(t, r.Delete(t.Context(), obj))
			r.read(t, obj)
			outcome, err := finalizers.Finalize(t.Context(), r, obj, account, succeed)
			require.NoError(t, err)
			require.Equal(t, finalizers.Finished, outcome)
			require.Equal(t, []string{theirs}, obj.GetFinalizers())
			version = obj.GetResourceVersion()
			require.Equal(t, []string{theirs}, r.read(t, obj))
			require.Equal(t, version, obj.GetResourceVersion())

			stale := obj.DeepCopyObject().(client.Object)
			for _, o := range []client.Object{obj, stale} {
				outcome, err = finalizers.Finalize(t.Context(), r, o, theirs, succeed)
				require.NoError(t, err, "also of a stale copy, when the object is gone")
				require.Equal(t, finalizers.Finished, outcome)
				require.Empty(t, o.GetFinalizers())
			}
			require.True(t, apierrors.IsNotFound(r.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)))
		})
	}
}

// What the API server answers, on which Ensure and Remove rely.
func TestRealRefusals(t *testing.T) {
	t.Run("NewFinalizerDuringDeletion", func(t *testing.T) {
		r := newReal(t)
		obj := &corev1.ConfigMap{}
		r.create(t, obj, theirs)
		require.NoError(t, r.Delete(t.Context(), obj.DeepCopy()))
		_, err := finalizers.Ensure(t.Context(), r, obj, account)
		require.True(t, apierrors.IsConflict(err), "a copy from before the deletion: %v", err)

		r.read(t, obj)
		_, err = finalizers.Ensure(t.Context(), r, obj, account)
		require.ErrorIs(t, err, finalizers.ErrBeingDeleted)
		unlocked := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"finalizers":[%q,%q]}}`, theirs, account))
		err = r.Patch(t.Context(), obj.DeepCopy(), unlocked)
		require.True(t, apierrors.IsInvalid(err), "what the API server would have said: %v", err)
		require.ErrorContains(t, err, "no new finalizers can be added if the object is being deleted")
	})
	t.Run("Namesake", func(t *testing.T) {
		r := newReal(t)
		former := &corev1.ConfigMap{}
		r.create(t, former)
		require.NoError(t, r.Delete(t.Context(), former.DeepCopy()))
		latter := &corev1.ConfigMap{}
		r.create(t, latter, account)

		_, err := finalizers.Ensure(t.Context(), r, former, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		former.Finalizers = []string{account}
		_, err = finalizers.Remove(t.Context(), r, former, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, []string{account}, r.read(t, latter))
	})
	t.Run("ShorterList", func(t *testing.T) {
		r := newReal(t)
		obj := &corev1.ConfigMap{}
		r.create(t, obj, theirs, account)
		stale := obj.DeepCopy()
		_, err := finalizers.Remove(t.Context(), r, obj, theirs)
		require.NoError(t, err)
		entry := client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/metadata/finalizers/1"},`+
			`{"op":"replace","path":"/metadata/resourceVersion","value":"`+stale.ResourceVersion+`"}]`))
		err = r.Patch(t.Context(), stale.DeepCopy(), entry)
		require.True(t, apierrors.IsInvalid(err), "why it is no JSON patch: %v", err)
		_, err = finalizers.Remove(t.Context(), r, stale, account)
		require.True(t, apierrors.IsConflict(err), "%v", err)
	})
	t.Run("LongEvent", func(t *testing.T) {
		r := newReal(t)
		obj := &corev1.ConfigMap{}
		r.create(t, obj)
		ev := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "long"}, EventTime: metav1.NowMicro(),
			ReportingController: "example.com/test", ReportingInstance: "test", Action: "Finalize", Reason: "CleanupGivenUp", Type: "Warning",
			Regarding: corev1.ObjectReference{Kind: "ConfigMap", Namespace: r.namespace, Name: obj.Name},
			Note:      strings.Repeat("x", 1025),
		}
		require.ErrorContains(t, r.Create(t.Context(), ev.DeepCopy()), "can have at most 1024 characters", "why notes are cut")
		ev.Note = ev.Note[:1024]
		require.NoError(t, r.Create(t.Context(), ev))
	})
}

// Controllers with a finalizer each, on one object, each with its own reads: nobody's entry may be lost or come back.
func TestRealRace(t *testing.T) {
	r := newReal(t)
	const rounds = 40
	names := []string{account, database, theirs}
	for round := range rounds {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: fmt.Sprint("round-", round)}}
		require.NoError(t, r.Create(t.Context(), obj))
		conflicts := race(t, r, obj, names, func(ctx context.Context, mine *corev1.ConfigMap, name string) error {
			_, err := finalizers.Ensure(ctx, r, mine, name)
			return err
		})
		require.ElementsMatch(t, names, r.read(t, obj), "round %d, %d conflicts", round, conflicts)

		require.NoError(t, r.Delete(t.Context(), obj))
		race(t, r, obj, names, func(ctx context.Context, mine *corev1.ConfigMap, name string) error {
			outcome, err := finalizers.Finalize(ctx, r, mine, name, func(ctx context.Context) error {
				held := &corev1.ConfigMap{}
				if err := r.Get(ctx, client.ObjectKeyFromObject(obj), held); err != nil {
					return fmt.Errorf("the object went before the cleanup of %s: %w", name, err)
				}
				return nil
			})
			if err == nil && outcome != finalizers.Finished {
				err = fmt.Errorf("outcome %s", outcome)
			}
			return err
		})
		err := r.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		require.True(t, apierrors.IsNotFound(err), "round %d: %v", round, err)
	}
}

// race runs act for each name at once, again after each conflict, on a copy that was read before all of them.
func race(t *testing.T, r *server, obj *corev1.ConfigMap, names []string, act func(context.Context, *corev1.ConfigMap, string) error) (conflicts int) {
	t.Helper()
	r.read(t, obj)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
				if errs[i] = r.Get(ctx, client.ObjectKeyFromObject(obj), mine); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, names[i])
	}
	require.NotZero(t, conflicts, "the copies were read before, so all but one lose at first")
	return conflicts
}
