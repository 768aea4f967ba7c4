package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

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

func TestStepClient(t *testing.T) {
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
		"Referred":            {"contents are read when they are needed", get(&corev1.Secret{}), live},
		"ReferredUntyped":     {"in whatever form", get(untyped("Secret")), live},
		"ReferredMetadata":    {"this is what the cache has, and the version is compared", get(metadataOf("Secret")), cached},
		"ListOfMetadata":      {"likewise", list(secretMetadataList), cached},
		"ListOfContents":      {"would read all of them", list(&corev1.SecretList{}), refused},
		"Watched":             {"the cache has it", get(&corev1.Pod{}), cached},
		"WatchedAndReferred":  {"the cache has it anyway", get(&corev1.ConfigMap{}), cached},
		"ListOfWatched":       {"the cache has them", list(&corev1.ConfigMapList{}), cached},
		"OwnKind":             {"the cache has it", get(&budget{}), cached},
		"Neither":             {"no event would bring a pass", get(&corev1.Service{}), refused},
		"MetadataOfNeither":   {"the same", get(metadataOf("Service")), refused},
		"UntypedOneOfNeither": {"the same", get(untyped("Service")), refused},
	}
	steps := []NamedStep[*budget]{
		Named("one", returning(nil), Referencing(&corev1.Secret{}, nothing), Referencing(&corev1.ConfigMap{}, nothing)),
		Named("two", returning(nil), Watching(&corev1.Pod{}, nil), Watching(&corev1.ConfigMap{}, nil), Referencing(&corev1.Secret{}, nothing)),
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fromCache, fromServer := &reads{Client: fake.NewFakeClient()}, &reads{Client: fake.NewFakeClient()}
			r := New(fromCache, steps...)
			require.NoError(t, r.prepare())
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
