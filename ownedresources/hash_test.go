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
	hash, err := valuesHash([]any{v})
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
		"QuantityInAnotherNotation": {
			reason: "the amount counts",
			value:  spec{A: "a", Q: resource.MustParse("1000m")},
			same:   true,
		},
		"OtherValue": {
			reason: "each value counts",
			value:  spec{A: "b", Q: resource.MustParse("1")},
		},
		"ValueInAnotherField": {
			reason: "the name of the field counts",
			value:  spec{B: "a", Q: resource.MustParse("1")},
		},
		"PointerToZero": {
			reason: "zero is a value, unlike nil",
			value:  spec{A: "a", Q: resource.MustParse("1"), P: new(int32(0))},
		},
		"FieldsInAnotherOrder": {
			reason: "a release of the API may move a field",
			value: struct {
				Q    resource.Quantity
				A, B string
			}{A: "a", Q: resource.MustParse("1")},
			same: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.same, base == hashOf(t, tc.value), tc.reason)
		})
	}
	// Clusters store these hashes. If they changed, an upgrade of an operator would replace all pods: see
	// TestStoredHashes.
	require.Equal(t, "v1:945b413ccef6cac2d44709f722c50a3c", base)
}

func TestHashIgnoresTheContentOfASecret(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u", ResourceVersion: "1"}, Data: map[string][]byte{"p": []byte("a")}}
	hash := hashOf(t, secret)
	secret.Data["p"] = []byte("b")
	require.Equal(t, hash, hashOf(t, secret), "equal annotations must not reveal equal passwords")
	secret.ResourceVersion = "2"
	require.NotEqual(t, hash, hashOf(t, secret))
	require.Equal(t, hashOf(t, secret), hashOf(t, &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta}), "its metadata are sufficient")
}

func TestHashIgnoresTheContentOfAnUnstructuredSecret(t *testing.T) {
	secret := func(data string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "uid": "u"}, "data": map[string]any{"p": data},
		}}
	}
	require.Equal(t, hashOf(t, secret("YQ==")), hashOf(t, secret("Yg==")))
}

func TestHashRefusesAValueThatContainsASecret(t *testing.T) {
	type config struct{ Auth *corev1.Secret }
	content := map[string]any{"apiVersion": "v1", "kind": "Secret"}
	for name, v := range map[string]any{
		"Slice":        []*corev1.Secret{{}},
		"SecretList":   corev1.SecretList{},
		"Field":        config{},
		"Map":          map[string]corev1.Secret{},
		"Objects":      []metav1.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
		"Interface":    struct{ V any }{map[string]any{"a": &corev1.Secret{}}},
		"Unstructured": []*unstructured.Unstructured{{Object: content}},
		"Content":      map[string]any{"a": []any{content}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := valuesHash([]any{v})
			require.ErrorContains(t, err, "pass the Secret as a value of its own")
		})
	}
	hashOf(t, []metav1.Object{&corev1.ConfigMap{}, nil})
	hashOf(t, map[string]any{"kind": "Secret"}) // a Secret of another API group
}

func TestHashOfANilObject(t *testing.T) {
	for _, v := range []any{(*corev1.Secret)(nil), (*metav1.PartialObjectMetadata)(nil), (*unstructured.Unstructured)(nil)} {
		require.Equal(t, hashOf(t, nil), hashOf(t, v))
	}
}

func TestHashOfARecursiveType(t *testing.T) {
	type tree []tree
	require.NotEqual(t, hashOf(t, tree{{}, {}}), hashOf(t, tree{{}}))
}

func TestHashRefusesAValueWithoutAJSONForm(t *testing.T) {
	_, err := valueHash(runtime.RawExtension{Raw: []byte("{")})
	require.ErrorContains(t, err, "hash of runtime.RawExtension")
}

func TestSetHashOfVersionsChangesWithTheObjects(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u", ResourceVersion: "1"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "v", ResourceVersion: "7"}}
	d := &appsv1.Deployment{}
	set := func(objs ...metav1.Object) bool {
		changed, err := SetHash(&d.Spec.Template, "example.com/uses", versionsOf(objs...))
		require.NoError(t, err)
		return changed
	}
	require.True(t, set(settings, secret))
	require.False(t, set(secret, settings), "the order of the objects does not count")
	secret.ResourceVersion = "8"
	require.True(t, set(settings, secret), "a changed object rolls the pods")
	secret.UID = "w"
	require.True(t, set(settings, secret), "an object that was deleted and created again rolls the pods")
	require.True(t, strings.HasPrefix(d.Spec.Template.Annotations["example.com/uses"], "v1:"))
	require.Empty(t, d.Annotations)
}
