package reconciletest

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

// runOf has some objects as the server would have given them out.
func runOf(t *testing.T, objects ...client.Object) *run {
	t.Helper()
	r := &run{scenario: &Scenario{}, present: map[madeKey]client.Object{}}
	for _, obj := range objects {
		kinds, _, err := clientgoscheme.Scheme.ObjectKinds(obj)
		require.NoError(t, err)
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
		r.present[madeKey{kinds[0], client.ObjectKeyFromObject(obj)}] = obj
	}
	return r
}

func stateOfObjects(t *testing.T, objects ...client.Object) state {
	t.Helper()
	s, err := runOf(t, objects...).snapshot()
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

func list(uid, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID(uid)},
		Data:       map[string]string{"text": text},
	}
}

func TestStatesThatAreAlike(t *testing.T) {
	one := stateOfObjects(t,
		list("1111", "web-abcde was made at 2026-03-01T12:00:00Z, after web-vwxyz"),
		pod("web-abcde", "2222", "1111", "a"), pod("web-vwxyz", "3333", "1111", "b"))
	other := stateOfObjects(t,
		list("4444", "web-bcdef was made at 2026-03-01T12:00:05.5+01:00, after web-abcde"),
		pod("web-abcde", "6666", "4444", "b"), pod("web-bcdef", "5555", "4444", "a"))
	assert.Empty(t, difference(one, other), "other names, UIDs, versions and times, and another order")
	assert.Contains(t, one, "Pod default/web-<1>")
}

func TestStatesThatDiffer(t *testing.T) {
	base := func() []client.Object {
		return []client.Object{list("1111", ""), pod("web-abcde", "2222", "1111", "a")}
	}
	tests := map[string]struct {
		reason string
		edit   func(objects []client.Object) []client.Object
		line   string
	}{
		"owner": {
			reason: "an owner reference to an object of that name that was there before",
			edit: func(objects []client.Object) []client.Object {
				objects[1].GetOwnerReferences()[0].UID = "0000"
				return objects
			},
			line: `Pod default/web-<1>: metadata.ownerReferences[web].uid: want "<uid of ConfigMap web>", got "0000"`,
		},
		"one more": {
			reason: "a leak under a name that the server gave",
			edit: func(objects []client.Object) []client.Object {
				return append(objects, pod("web-zzzzz", "7777", "1111", "a"))
			},
			line: "Pod default/web-<2>: should not be there",
		},
		"being deleted": {
			reason: "an object that never goes",
			edit: func(objects []client.Object) []client.Object {
				objects[0].SetDeletionTimestamp(new(metav1.Now()))
				return objects
			},
			line: `ConfigMap default/web: metadata.deletionTimestamp: want nothing, got "<time>"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lines := difference(stateOfObjects(t, base()...), stateOfObjects(t, tc.edit(base())...))
			assert.Equal(t, []string{tc.line}, lines, tc.reason)
		})
	}
}

func TestObservedGeneration(t *testing.T) {
	content := map[string]any{"status": map[string]any{
		"observedGeneration": int64(3), "conditions": []any{map[string]any{"observedGeneration": int64(2)}},
	}}
	namedGenerations(content, 3)
	assert.Equal(t, map[string]any{"status": map[string]any{
		"observedGeneration": "that of the object",
		"conditions":         []any{map[string]any{"observedGeneration": "not that of the object"}},
	}}, content, "how often the spec was written does not matter, and whether the last one was seen does")
}
