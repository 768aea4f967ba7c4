package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestValidate(t *testing.T) {
	w := newEnvInMemory(t)
	noUID := w.Owner.DeepCopy()
	noUID.UID = ""
	elsewhere := w.Deployment()
	elsewhere.Namespace = "kube-system"
	nameless := w.Deployment()
	nameless.Name = ""
	var missing *appsv1.Deployment
	nowhere := w.Deployment()
	nowhere.Namespace = ""
	cluster := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}}
	tests := map[string]struct {
		reason string
		owner  client.Object
		wanted []client.Object
		says   string
	}{
		"OwnerWithoutUID": {"An owner reference needs a UID.", noUID, []client.Object{w.Deployment()}, "has no UID"},
		"NoOwner":         {"There is nothing to refer to.", nil, []client.Object{w.Deployment()}, "owner is nil"},
		"Nil":             {"There is no object.", w.Owner, []client.Object{nil}, "it is nil"},
		"TypedNil":        {"A nil pointer in an interface is no object either.", w.Owner, []client.Object{missing}, "it is nil"},
		"NoName":          {"An object is found by its name.", w.Owner, []client.Object{nameless}, "has no name"},
		"Twice":           {"Two objects of one name would overwrite each other.", w.Owner, []client.Object{w.Deployment(), w.Service(), w.Deployment()}, "is desired twice"},
		"OtherNamespace":  {"The garbage collector would delete it.", w.Owner, []client.Object{elsewhere}, "another namespace"},
		"ClusterScoped": {"So would it this one.", w.Owner, []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}},
			"is cluster-scoped"},
		"NoNamespace": {"A cluster-scoped owner has no namespace to inherit.", cluster, []client.Object{nowhere}, "has no namespace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w.Requests.Sent()
			_, err := Apply(t.Context(), w.Client, tc.owner, tc.wanted...)
			require.ErrorContains(t, err, tc.says, tc.reason)
			require.Empty(t, w.Requests.Sent(), "no request may be sent")
		})
	}
}
