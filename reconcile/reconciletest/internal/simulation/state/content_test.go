package state

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The compared objects belong to the server. The comparison does not change them, and neither does a function of the test's author.
func TestNothingIsChanged(t *testing.T) {
	untyped := func(colour string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(`{"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": "7",
			"generation": 2, "labels": {"pod-template-hash": "x"}, "annotations": {"reconciletest.opblocks.dev/another-writer": "x"}, "managedFields": [{"manager": "a"}]},
			"spec": {"colour": "`+colour+`", "keys": ["b", "a"]}, "status": {"observedGeneration": 2, "conditions": [{"type": "B"}, {"type": "A"}]}}`), &u.Object))
		return u
	}
	typed := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "2", ResourceVersion: "8", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}}},
		Data:       map[string][]byte{"key": []byte("value")},
	}
	typed.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	objects := []client.Object{untyped("red"), typed}
	before := []client.Object{untyped("red"), typed.DeepCopy()}
	_, err := Of(objects, &Identities{}, "", func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "colour")
		unstructured.RemoveNestedField(u.Object, "data")
		u.SetLabels(nil)
	})
	require.NoError(t, err)
	ChangedFields(objects[0], untyped("blue"))
	ChangedPaths(objects[0], untyped("blue"))
	FindString(objects[0], func(string) bool { return false })
	assert.Equal(t, before, objects)
}
