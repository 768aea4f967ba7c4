package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

func TestValidate(t *testing.T) {
	w := newServerEnv(t)
	noUID := w.owner.DeepCopy()
	noUID.UID = ""
	elsewhere := w.deployment()
	elsewhere.Namespace = "kube-system"
	nameless := w.deployment()
	nameless.Name = ""
	var missing *appsv1.Deployment
	nowhere := w.deployment()
	nowhere.Namespace = ""
	cluster := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}}
	tests := map[string]struct {
		reason string
		owner  client.Object
		wanted []client.Object
		says   string
	}{
		"OwnerWithoutUID": {"An owner reference needs a UID.", noUID, []client.Object{w.deployment()}, "has no UID"},
		"NoOwner":         {"There is nothing to refer to.", nil, []client.Object{w.deployment()}, "owner is nil"},
		"Nil":             {"There is no object.", w.owner, []client.Object{nil}, "it is nil"},
		"TypedNil":        {"A nil pointer in an interface is no object either.", w.owner, []client.Object{missing}, "it is nil"},
		"NoName":          {"An object is found by its name.", w.owner, []client.Object{nameless}, "has no name"},
		"Twice":           {"Two objects of one name would overwrite each other.", w.owner, []client.Object{w.deployment(), w.service(), w.deployment()}, "is desired twice"},
		"OtherNamespace":  {"The garbage collector would delete it.", w.owner, []client.Object{elsewhere}, "another namespace"},
		"ClusterScoped": {"So would it this one.", w.owner, []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}},
			"is cluster-scoped"},
		"NoNamespace": {"A cluster-scoped owner has no namespace to inherit.", cluster, []client.Object{nowhere}, "has no namespace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w.sent.Sent()
			_, err := Apply(t.Context(), w.client, tc.owner, tc.wanted...)
			require.ErrorContains(t, err, tc.says, tc.reason)
			require.Empty(t, w.sent.Sent(), "no request may be sent")
		})
	}
}

// Most authors write Go's own numbers and lists into an unstructured object.
func TestWithJSONValues(t *testing.T) {
	w := newServerEnv(t)
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
		results, err := Apply(t.Context(), w.client, w.owner, want())
		require.NoError(t, err)
		require.Equal(t, op, results[0].Operation)
	}
	var live corev1.Service
	w.live(t, &live)
	require.Equal(t, int32(8080), live.Spec.Ports[0].TargetPort.IntVal)

	bad := want().(*unstructured.Unstructured)
	bad.Object["spec"] = func() {}
	_, err := Apply(t.Context(), w.client, w.owner, bad)
	require.ErrorContains(t, err, "no JSON form")
}

func TestWithData(t *testing.T) {
	w := newServerEnv(t)
	want := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			StringData: map[string]string{"a": "text", "b": "wins"},
			Data:       map[string][]byte{"b": []byte("loses"), "c": {0xff}},
		}
	}
	w.expect(t, want(), apply.Created, "POST secrets")
	w.expect(t, want(), apply.Unchanged, none...)
	var live corev1.Secret
	byHand(t, w, &live, func(s *corev1.Secret) { s.Data["a"] = []byte("drift") })
	_, err := w.apply(t, want())
	require.NoError(t, err)
	w.live(t, &live)
	require.Equal(t, map[string][]byte{"a": []byte("text"), "b": []byte("wins"), "c": {0xff}}, live.Data)
}
