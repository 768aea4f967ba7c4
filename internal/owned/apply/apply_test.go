package apply_test

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/record"
)

func TestApplyTriesAllObjects(t *testing.T) {
	w := newInMemory(t)
	theirs := w.Deployment()
	require.NoError(t, w.Other.Create(t.Context(), theirs))
	o := w.OwnerOf(t)
	all, err := w.Applier.Declare(o, []client.Object{w.Deployment(), w.Service()})
	require.NoError(t, err)
	results, err := apply.All(t.Context(), w.Applier, o, all)
	require.ErrorAs(t, err, new(*owned.OwnershipError))
	require.Nil(t, results[0].Object)
	require.Equal(t, apply.Created, results[1].Operation)
	require.NotEmpty(t, results[1].Object.(*corev1.Service).Spec.ClusterIP)
}

// blind is a client whose cache shows no object. Reads of unstructured objects go to the API server, as with a manager's client.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, live := obj.(interface{ UnstructuredContent() map[string]any }); live {
		return b.Client.Get(ctx, key, obj, opts...)
	}
	return apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
}

func TestApplyOfAnObjectThatTheCacheDoesNotShow(t *testing.T) {
	w := newInMemory(t)
	seeing := w.Client
	w.Client = blind{seeing}
	w.MustApply(t, w.Deployment())
	require.Equal(t, []string{"POST deployments"}, w.Requests.Sent())

	w.MustApply(t, w.Deployment())
	require.Empty(t, w.Requests.Sent(), "it is remembered until the cache shows it")

	w.Applier = apply.New()
	w.MustApply(t, w.Deployment())
	require.Equal(t, []string{"POST deployments", "GET deployments"}, w.Requests.Sent(), "after a restart it is found past the cache")

	w.Applier = apply.New()
	w.Applier.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(2 * apply.MaxCacheDelay))
	_, err := w.Apply(t, w.Deployment())
	var hidden *owned.NotCachedError
	require.ErrorAs(t, err, &hidden, "a cache that is behind for that long will never show it")
	require.Equal(t, "NotInCache", hidden.Reason())
}

func TestApplyOfAnObjectThatExistsAndThenIsGone(t *testing.T) {
	w := newInMemory(t)
	d, err := w.Applier.Desire(w.OwnerOf(t), w.Service(), &owned.Options{})
	require.NoError(t, err)
	d.Object.SetNamespace(w.Namespace)
	exists := errors.New("already exists")
	_, err = w.Applier.UpdateUnseen(t.Context(), d, exists)
	require.ErrorIs(t, err, exists, "a lost race: the next pass creates it")
}

// A builder may put Go's own numbers and lists into an unstructured object.
func TestWithJSONValues(t *testing.T) {
	w := newInMemory(t)
	want := func() client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "web", "labels": map[string]string{"app": "web"}},
			"spec": map[string]any{
				"selector": map[string]string{"app": "web"},
				"ports":    []map[string]any{{"name": "http", "port": 80, "targetPort": int32(8080)}},
			},
		}}
	}
	for _, op := range []apply.Operation{apply.Created, apply.Unchanged} {
		require.Equal(t, op, w.MustApply(t, want()).Operation)
	}
	var live corev1.Service
	w.Live(t, &live)
	require.Equal(t, int32(8080), live.Spec.Ports[0].TargetPort.IntVal)

	bad := want().(*unstructured.Unstructured)
	bad.Object["spec"] = func() {}
	_, err := w.Apply(t, bad)
	require.ErrorContains(t, err, "no JSON form")
}

func TestWithData(t *testing.T) {
	w := newInMemory(t)
	want := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			StringData: map[string]string{"a": "text", "b": "wins"},
			Data:       map[string][]byte{"b": []byte("loses"), "c": {0xff}},
		}
	}
	w.Expect(t, want(), apply.Created, "POST secrets")
	w.Settled(t, want())
	var live corev1.Secret
	ownedtest.ByHand(t, w, &live, func(s *corev1.Secret) { s.Data["a"] = []byte("drift") })
	w.MustApply(t, want())
	w.Live(t, &live)
	require.Equal(t, map[string][]byte{"a": []byte("text"), "b": []byte("wins"), "c": {0xff}}, live.Data)
}

// An owner that is itself a child has annotations that this library has set, and builders copy the annotations of the owner.
func TestWithoutOwnAnnotations(t *testing.T) {
	w := newInMemory(t)
	want := func() *corev1.Service {
		s := w.Service()
		s.Annotations = map[string]string{record.Applied: "v1:applied:0", record.Set: "of-the-owner", "team": "shop"}
		return s
	}
	live := w.Expect(t, want(), apply.Created, "POST services")
	require.NotContains(t, live.GetAnnotations(), record.Set)
	require.Equal(t, "shop", live.GetAnnotations()["team"])
	w.Settled(t, want())
}

// staleClient is a client whose cache shows an old version of one object.
type staleClient struct {
	client.Client
	was *appsv1.Deployment
}

func (c staleClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if d, ok := obj.(*appsv1.Deployment); ok {
		c.was.DeepCopyInto(d)
		return nil
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func TestApplyWithAStaleCache(t *testing.T) {
	setUp := func(t *testing.T, edit func(*appsv1.Deployment)) (env *ownedtest.Server, changed *appsv1.Deployment) {
		env = newInMemory(t)
		env.Expect(t, env.Deployment(), apply.Created, "POST deployments")
		changed = env.Deployment()
		changed.Labels["example.com/changed"] = "1"
		env.Expect(t, changed, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
		was := &appsv1.Deployment{}
		env.Live(t, was)
		ownedtest.ByHand(t, env, &appsv1.Deployment{}, edit)
		env.Applier = apply.New()
		env.Client = staleClient{env.Client, was}
		changed.Labels["example.com/changed"] = "2"
		return env, changed
	}
	t.Run("OwnerReferenceRemoved", func(t *testing.T) {
		env, changed := setUp(t, func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		_, err := env.Apply(t, changed)
		require.ErrorAs(t, err, new(*owned.OwnershipError), "somebody has taken it away from its owner")
		live := &appsv1.Deployment{}
		env.Live(t, live)
		require.Empty(t, live.OwnerReferences)
		require.Equal(t, "1", live.Labels["example.com/changed"])
	})
	t.Run("SomethingElseChanged", func(t *testing.T) {
		env, changed := setUp(t, func(d *appsv1.Deployment) { d.Labels["theirs"] = "x" })
		env.MustApply(t, changed)
		require.Equal(t, []string{"PATCH deployments", "GET deployments", "PATCH deployments"}, env.Requests.Sent())
		live := &appsv1.Deployment{}
		env.Live(t, live)
		require.Equal(t, "2", live.Labels["example.com/changed"])
		require.Equal(t, "x", live.Labels["theirs"])
	})
}
