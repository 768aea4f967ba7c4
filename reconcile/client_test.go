package reconcile

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// reads is a client that counts its reads.
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

func untypedList(kind string) *unstructured.UnstructuredList {
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
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
		"Referenced":           {"the cache has only the metadata", get(&corev1.Secret{}), live},
		"ReferencedUntyped":    {"an unstructured object has the contents too", get(untyped("Secret")), live},
		"ReferencedMetadata":   {"the cache has the metadata", get(metadataOf("Secret")), cached},
		"ListOfMetadata":       {"the cache has the metadata", list(secretMetadataList), cached},
		"ListOfContents":       {"one request would read the contents of all Secrets", list(&corev1.SecretList{}), refused},
		"Watched":              {"the cache has the whole object", get(&corev1.Pod{}), cached},
		"WatchedAndReferenced": {"another step watches the kind, so the cache has the whole object", get(&corev1.ConfigMap{}), cached},
		"ListOfWatched":        {"the cache has the whole objects", list(&corev1.ConfigMapList{}), cached},
		"OwnKind":              {"the reconciler watches its own kind", get(&budget{}), cached},
		"WatchedUntyped":       {"the cache holds typed objects: an informer of untyped ones may be behind", get(untyped("Pod")), live},
		"WatchedMetadata":      {"the metadata is part of the whole object that the cache has", get(metadataOf("Pod")), cached},
		"ListOfWatchedUntyped": {"the cache holds typed objects", list(untypedList("Pod")), live},
		"MetadataIsWatched":    {"the whole object is not in the cache, though another step reads it", get(&corev1.Endpoints{}), live}, //nolint:staticcheck // any kind
		"ListOfWhatIsMetadata": {"one request would read the contents of all objects", list(&corev1.EndpointsList{}), refused},
		"Untyped":              {"the cache has the whole object", get(untyped("Node")), cached},
		"UntypedMetadata":      {"the metadata is part of the whole object", get(metadataOf("Node")), cached},
		"UntypedReadTyped":     {"the cache holds untyped objects: an informer of typed ones may be behind", get(&corev1.Node{}), live},
		"Neither":              {"no event would trigger a reconcile", get(&corev1.Service{}), refused},
		"MetadataOfNeither":    {"the kind counts, not the form in which it is read", get(metadataOf("Service")), refused},
		"UntypedOneOfNeither":  {"the kind counts, not the form in which it is read", get(untyped("Service")), refused},
	}
	steps := []NamedStep[*budget]{
		Named("one", returning(nil)).Reads(&corev1.Secret{}, nothing).Reads(&corev1.ConfigMap{}, nothing),
		Named("two", returning(nil), Watching(&corev1.Pod{}, nil), Watching(&corev1.ConfigMap{}, nil),
			Watching(metadataOf("Endpoints"), nil), Watching(untyped("Node"), nil), Watching(metadataOf("Node"), nil)).Reads(&corev1.Secret{}, nothing),
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fromCache, fromServer := &reads{Client: fake.NewFakeClient()}, &reads{Client: fake.NewFakeClient()}
			r := New(fromCache, steps...)
			require.NoError(t, r.prepare())
			r.stepClient.reader.Live = fromServer
			for range 2 { // the client remembers the access to the type after the first read
				err := tc.read(t.Context(), r.stepClient)
				require.Equal(t, tc.where == refused, err != nil && client.IgnoreNotFound(err) != nil, "%s: %v", tc.reason, err)
			}
			require.Equal(t, tc.where == cached, fromCache.gets+fromCache.lists == 2, tc.reason)
			require.Equal(t, tc.where == live, fromServer.gets+fromServer.lists == 2, tc.reason)
		})
	}
}

// optionalKind counts how many reads are going on at the same time.
type optionalKind struct {
	served  bool
	readers int
}

func (k *optionalKind) Acquire() bool {
	if k.served {
		k.readers++
	}
	return k.served
}

func (k *optionalKind) Release() { k.readers-- }

// If a kind is not served, a read through the cache would start a watch of the kind and wait for it for ever. So the
// client refuses the read.
func TestStepClientOfServedKinds(t *testing.T) {
	podKind := corev1.SchemeGroupVersion.WithKind("Pod")
	kind := &optionalKind{}
	during := 0
	var types []string
	counted := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			during += kind.readers
			if kind.readers > 0 {
				types = append(types, fmt.Sprintf("%T", obj))
			}
			return nil
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			during += kind.readers
			return nil
		},
	})
	c, err := newStepClient(counted, []client.Object{&corev1.Pod{}, &corev1.ConfigMap{}}, nil)
	require.NoError(t, err)
	c.served = map[schema.GroupVersionKind]servedKind{podKind: kind}
	get := func(obj client.Object) error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, obj)
	}
	require.True(t, meta.IsNoMatchError(get(&corev1.Pod{})))
	require.True(t, meta.IsNoMatchError(get(untyped("Pod"))))
	require.True(t, meta.IsNoMatchError(c.List(t.Context(), &corev1.PodList{})))
	require.NoError(t, get(&corev1.ConfigMap{}), "other kinds are always served")
	require.Zero(t, during)

	kind.served = true
	require.NoError(t, get(&corev1.Pod{}))
	require.NoError(t, c.List(t.Context(), &corev1.PodList{}))
	require.Equal(t, 2, during, "the kind is held during each read")
	require.Zero(t, kind.readers, "and is let go of afterwards")
	require.NoError(t, get(metadataOf("Pod")), "the metadata is a part of the whole object, so no watch of the metadata starts")
	require.Equal(t, []string{"*v1.Pod", "*v1.Pod"}, types)
}
