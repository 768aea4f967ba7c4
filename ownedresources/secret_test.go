package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStringDataOfAnUnstructuredSecret(t *testing.T) {
	secret := func(fields map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: fields}
		u.SetAPIVersion("v1")
		u.SetKind("Secret")
		return u
	}
	given := secret(map[string]any{
		"stringData": map[string]any{"a": "text", "b": "wins"},
		"data":       map[string]any{"b": "b2xk", "c": "c3RheXM="},
	})
	before := given.DeepCopy()
	want := secret(map[string]any{"data": map[string]any{"a": "dGV4dA==", "b": "d2lucw==", "c": "c3RheXM="}})
	require.Equal(t, want, withData(given))
	require.Equal(t, before, given, "what the caller gave stays as it is")
}

func TestStringData(t *testing.T) {
	w := newWorld(t)
	want := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			StringData: map[string]string{"a": "text", "b": "wins"},
			Data:       map[string][]byte{"b": []byte("loses"), "c": {0xff}},
		}
	}
	w.expect(t, want(), Created, "POST secrets")
	w.expect(t, want(), Unchanged, none...)
	var live corev1.Secret
	byHand(t, w, &live, func(s *corev1.Secret) { s.Data["a"] = []byte("drift") })
	_, err := w.apply(t, want())
	require.NoError(t, err)
	w.live(t, &live)
	require.Equal(t, map[string][]byte{"a": []byte("text"), "b": []byte("wins"), "c": {0xff}}, live.Data)
}
