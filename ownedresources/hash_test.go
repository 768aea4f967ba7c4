package ownedresources

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func hashOf(t *testing.T, v any) string {
	t.Helper()
	hash, err := Hash(v)
	require.NoError(t, err)
	require.Len(t, hash, len("v1:")+32)
	return hash
}

func TestHash(t *testing.T) {
	type spec struct {
		B, A string
		Q    resource.Quantity
		P    *int32
	}
	base := hashOf(t, spec{A: "a", Q: resource.MustParse("1")})
	tests := map[string]struct {
		reason string
		value  any
		same   bool
	}{
		"quantity in other words": {reason: "what it says counts", value: spec{A: "a", Q: resource.MustParse("1000m")}, same: true},
		"other value":             {reason: "any value counts", value: spec{A: "b", Q: resource.MustParse("1")}},
		"value in another field":  {reason: "so does its name", value: spec{B: "a", Q: resource.MustParse("1")}},
		"pointer to zero":         {reason: "zero is not nothing", value: spec{A: "a", Q: resource.MustParse("1"), P: new(int32(0))}},
		"fields in another order": {reason: "a release may move a field", value: struct {
			Q    resource.Quantity
			A, B string
		}{A: "a", Q: resource.MustParse("1")}, same: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.same, base == hashOf(t, tc.value), tc.reason)
		})
	}
	// Pinned: hashes are stored in clusters, and a new version must not roll every pod.
	require.Equal(t, "v1:945b413ccef6cac2d44709f722c50a3c", base)
}

func TestHashNeverTakesASecretsContent(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u", ResourceVersion: "1"}, Data: map[string][]byte{"p": []byte("a")}}
	hash := hashOf(t, secret)
	secret.Data["p"] = []byte("b")
	require.Equal(t, hash, hashOf(t, secret), "equal passwords must not be told by equal annotations")
	secret.ResourceVersion = "2"
	require.NotEqual(t, hash, hashOf(t, secret))
	require.Equal(t, hashOf(t, secret), hashOf(t, &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta}), "its metadata are enough")
}

func TestHashOfSecretsInsideIsRefused(t *testing.T) {
	type config struct{ Auth *corev1.Secret }
	content := map[string]any{"apiVersion": "v1", "kind": "Secret"}
	for name, v := range map[string]any{
		"list": []*corev1.Secret{{}}, "items": corev1.SecretList{}, "field": config{}, "map": map[string]corev1.Secret{},
		"objects": []metav1.Object{&corev1.ConfigMap{}, &corev1.Secret{}}, "anything": struct{ V any }{map[string]any{"a": &corev1.Secret{}}},
		"untyped": []*unstructured.Unstructured{{Object: content}}, "content": map[string]any{"a": []any{content}},
	} {
		_, err := Hash(v)
		require.ErrorContains(t, err, "give it Versions of them", name)
	}
	hashOf(t, []metav1.Object{&corev1.ConfigMap{}, nil})
	hashOf(t, map[string]any{"kind": "Secret"}) // of some other group
	untyped := func(data string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "uid": "u"}, "data": map[string]any{"p": data},
		}}
	}
	require.Equal(t, hashOf(t, untyped("YQ==")), hashOf(t, untyped("Yg==")))
}

func TestHashOfNothing(t *testing.T) {
	for _, v := range []any{(*corev1.Secret)(nil), (*metav1.PartialObjectMetadata)(nil), (*unstructured.Unstructured)(nil)} {
		require.Equal(t, hashOf(t, nil), hashOf(t, v))
	}
}

func TestHashOfATypeThatContainsItself(t *testing.T) {
	type tree []tree
	require.NotEqual(t, hashOf(t, tree{{}, {}}), hashOf(t, tree{{}}))
}

func TestHashOfWhatHasNoJSON(t *testing.T) {
	_, err := Hash(runtime.RawExtension{Raw: []byte("{")})
	require.ErrorContains(t, err, "hash of runtime.RawExtension")
}

func TestPodsRollWithWhatTheyUse(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u", ResourceVersion: "1"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "v", ResourceVersion: "7"}}
	d := &appsv1.Deployment{}
	set := func(objs ...metav1.Object) bool {
		changed, err := SetHash(&d.Spec.Template, "example.com/uses", Versions(objs...))
		require.NoError(t, err)
		return changed
	}
	require.True(t, set(settings, secret))
	require.False(t, set(secret, settings), "their order does not count")
	secret.ResourceVersion = "8"
	require.True(t, set(settings, secret), "a change rolls the pods")
	secret.UID = "w"
	require.True(t, set(settings, secret), "so does deleting and creating it anew")
	require.True(t, strings.HasPrefix(d.Spec.Template.Annotations["example.com/uses"], "v1:"))
	require.Empty(t, d.Annotations)
}
