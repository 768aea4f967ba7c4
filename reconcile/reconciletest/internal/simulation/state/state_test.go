package state

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stateOf returns the state of the objects, in the form in which the server returns them.
func stateOf(t *testing.T, objects ...client.Object) State {
	t.Helper()
	for _, obj := range objects {
		kinds, _, err := clientgoscheme.Scheme.ObjectKinds(obj)
		require.NoError(t, err)
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	s, err := Of(objects, &Identities{}, "", nil)
	require.NoError(t, err)
	return s
}

func pod(name, uid, owner, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, GenerateName: "web-", UID: types.UID(uid), ResourceVersion: uid,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ConfigMap", Name: "web", UID: types.UID(owner)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}},
	}
}

func configMap(uid, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid)},
		Data:       map[string]string{"text": text},
	}
}

func TestOfEqualStates(t *testing.T) {
	one := stateOf(t,
		configMap("1111", "web-abcde was made at 2026-03-01T12:00:00Z, after web-vwxyz"),
		pod("web-abcde", "2222", "1111", "a"), pod("web-vwxyz", "3333", "1111", "b"))
	other := stateOf(t,
		configMap("4444", "web-bcdef was made at 2026-03-01T12:00:05.5+01:00, after web-abcde"),
		pod("web-abcde", "6666", "4444", "b"), pod("web-bcdef", "5555", "4444", "a"))
	assert.Empty(t, Difference(one, other), "generated names, UIDs, resource versions, times and the order are ignored")
	assert.Contains(t, one, "Pod default/web-<1>")
}

func TestOfDifferentStates(t *testing.T) {
	base := func() []client.Object {
		return []client.Object{configMap("1111", ""), pod("web-abcde", "2222", "1111", "a")}
	}
	tests := map[string]struct {
		reason string
		edit   func(objects []client.Object) []client.Object
		line   string
	}{
		"OwnerUID": {
			reason: "an owner reference to an earlier object of that name",
			edit: func(objects []client.Object) []client.Object {
				objects[1].GetOwnerReferences()[0].UID = "0000"
				return objects
			},
			line: `Pod default/web-<1>: metadata.ownerReferences[web].uid: "<uid of ConfigMap web>" without faults, "0000" here`,
		},
		"OneMore": {
			reason: "an object left behind under a generated name",
			edit: func(objects []client.Object) []client.Object {
				return append(objects, pod("web-zzzzz", "7777", "1111", "a"))
			},
			line: "Pod default/web-<2>: absent without faults, present here",
		},
		"BeingDeleted": {
			reason: "an object that is never removed",
			edit: func(objects []client.Object) []client.Object {
				objects[0].SetDeletionTimestamp(new(metav1.Now()))
				return objects
			},
			line: `ConfigMap default/web: metadata.deletionTimestamp: nothing without faults, "<time>" here`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lines := Difference(stateOf(t, base()...), stateOf(t, tc.edit(base())...))
			assert.Equal(t, []string{tc.line}, lines, tc.reason)
		})
	}
}

func TestReplaceGenerations(t *testing.T) {
	content := map[string]any{"status": map[string]any{
		"observedGeneration": int64(3), "conditions": []any{map[string]any{"observedGeneration": int64(2)}},
	}}
	replaceGenerations(content, 3)
	assert.Equal(t, map[string]any{"status": map[string]any{
		"observedGeneration": "that of the object",
		"conditions":         []any{map[string]any{"observedGeneration": "not that of the object"}},
	}}, content, "how often the spec was written does not matter, but whether the last one was observed does")
}
