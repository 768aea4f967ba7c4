package reconcile

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func nothing(*budget) []types.NamespacedName { return nil }

func TestNamespaceOfAReference(t *testing.T) {
	kept := []types.NamespacedName{{Name: "own"}, {Namespace: "other", Name: "given"}}
	n := Named("one", giving(nil), Referencing(&corev1.Secret{}, func(*budget) []types.NamespacedName { return kept }))
	want := []types.NamespacedName{{Namespace: "ns", Name: "own"}, {Namespace: "other", Name: "given"}}
	if diff := cmp.Diff(want, n.references[0].names(newBudget())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	require.Empty(t, kept[0].Namespace, "what the function gives may be a part of the object, which is the cache's")
}

func TestReferenceFromAnotherType(t *testing.T) {
	c := fake.NewFakeClient()
	_, err := New(c, Named("one", giving(nil), Referencing(&corev1.Secret{}, func(*corev1.Pod) []types.NamespacedName { return nil }))).
		Reconcile(t.Context(), request)
	require.ErrorContains(t, err, `step "one" refers from *v1.Pod, and is a step of *v1.PodDisruptionBudget`)
	require.NoError(t, New(c, Named("one", giving(nil), Referencing(&corev1.Secret{}, func(client.Object) []types.NamespacedName { return nil }))).check(),
		"an interface that T has is as good")
}

// reads counts what is read.
type reads struct {
	client.Client
	gets, lists int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r.gets++
	return r.Client.Get(ctx, key, obj, opts...)
}

func (r *reads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.lists++
	return r.Client.List(ctx, list, opts...)
}

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

func untyped(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return u
}

func TestWhereAStepReads(t *testing.T) {
	const cached, live, refused = "cached", "live", "refused"
	name := client.ObjectKey{Namespace: "ns", Name: "x"}
	get := func(obj client.Object) func(context.Context, client.Reader) error {
		return func(ctx context.Context, c client.Reader) error { return c.Get(ctx, name, obj) }
	}
	list := func(list client.ObjectList) func(context.Context, client.Reader) error {
		return func(ctx context.Context, c client.Reader) error { return c.List(ctx, list) }
	}
	secretMetadataList := &metav1.PartialObjectMetadataList{}
	secretMetadataList.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	tests := map[string]struct {
		reason string
		read   func(context.Context, client.Reader) error
		where  string
	}{
		"referred":               {"contents are read when they are needed", get(&corev1.Secret{}), live},
		"referred, untyped":      {"in whatever form", get(untyped("Secret")), live},
		"referred, metadata":     {"this is what the cache has, and the version is compared", get(metadataOf("Secret")), cached},
		"list of metadata":       {"likewise", list(secretMetadataList), cached},
		"list of contents":       {"would read all of them", list(&corev1.SecretList{}), refused},
		"watched":                {"the cache has it", get(&corev1.Pod{}), cached},
		"watched and referred":   {"the cache has it anyway", get(&corev1.ConfigMap{}), cached},
		"list of watched":        {"the cache has them", list(&corev1.ConfigMapList{}), cached},
		"own kind":               {"the cache has it", get(&budget{}), cached},
		"neither":                {"no event would bring a pass", get(&corev1.Service{}), refused},
		"metadata of neither":    {"the same", get(metadataOf("Service")), refused},
		"untyped one of neither": {"the same", get(untyped("Service")), refused},
	}
	steps := []NamedStep[*budget]{
		Named("one", giving(nil), Referencing(&corev1.Secret{}, nothing), Referencing(&corev1.ConfigMap{}, nothing)),
		Named("two", giving(nil), Watching(&corev1.Pod{}, nil), Watching(&corev1.ConfigMap{}, nil), Referencing(&corev1.Secret{}, nothing)),
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fromCache, fromServer := &reads{Client: fake.NewFakeClient()}, &reads{Client: fake.NewFakeClient()}
			r := New(fromCache, steps...)
			require.NoError(t, r.check())
			r.stepClient.live = fromServer
			for range 2 { // what a type is is remembered
				err := tc.read(t.Context(), r.stepClient)
				require.Equal(t, tc.where == refused, err != nil && client.IgnoreNotFound(err) != nil, "%s: %v", tc.reason, err)
			}
			require.Equal(t, tc.where == cached, fromCache.gets+fromCache.lists == 2, tc.reason)
			require.Equal(t, tc.where == live, fromServer.gets+fromServer.lists == 2, tc.reason)
		})
	}
}

func TestVersion(t *testing.T) {
	of := func(uid, version string) string {
		return VersionOf(&metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version})
	}
	require.Equal(t, of("a", "1"), of("a", "1"))
	require.NotEqual(t, of("a", "1"), of("a", "2"), "changed")
	require.NotEqual(t, of("a", "1"), of("b", "1"), "deleted and created again")
}
